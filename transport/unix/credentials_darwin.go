package unix

import (
	"net"

	"golang.org/x/sys/unix"
)

func credentials(conn *net.UnixConn) (c Credentials, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return c, err
	}
	var cred *unix.Xucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) }); e != nil {
		return c, e
	}
	if err != nil {
		return c, err
	}
	c.UID = int(cred.Uid)
	if cred.Ngroups > 0 {
		c.GID = int(cred.Groups[0])
	}
	return c, nil
}
