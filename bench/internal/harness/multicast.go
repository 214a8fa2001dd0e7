package harness

import (
	"fmt"
	"net"

	"golang.org/x/net/ipv4"
)

// multicastInterface returns an interface by name, or the one that the library
// would take: the system's choice where it knows a way to groups, else loopback.
func multicastInterface(name string) (*net.Interface, error) {
	if name != "" {
		return net.InterfaceByName(name)
	}
	if conn, err := net.Dial("udp4", "239.255.0.1:9"); err == nil {
		conn.Close()
		return nil, nil
	}
	faces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range faces {
		if faces[i].Flags&net.FlagLoopback != 0 && faces[i].Flags&net.FlagUp != 0 {
			return &faces[i], nil
		}
	}
	return nil, fmt.Errorf("no interface for multicast")
}

// sendToGroup opens a socket that sends to groups by an interface.
func sendToGroup(face *net.Interface) (*net.UDPConn, error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	p := ipv4.NewPacketConn(conn)
	if face != nil {
		err = p.SetMulticastInterface(face)
	}
	if err == nil {
		err = p.SetMulticastLoopback(true)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
