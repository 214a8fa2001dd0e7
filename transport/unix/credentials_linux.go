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
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return c, e
	}
	if err != nil {
		return c, err
	}
	return Credentials{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}, nil
}
