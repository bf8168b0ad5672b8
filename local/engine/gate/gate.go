// Package gate provides a loopback address that can be closed. Open, it forwards connections. Closed, it neither
// answers nor refuses them: a client waits until its own timeout, as for an address without a route.
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// backlog of connections that wait while the gate is open.
	backlog = 128
	// fillers are the connections that are tried at most to fill a backlog of one.
	fillers = 16
	// fullAfter is how long a connection waits until the backlog counts as full.
	fullAfter = 50 * time.Millisecond
)

// Gate is the address. It is shut at first.
type Gate struct {
	target   string
	listener *net.TCPListener
	work     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   bool
	ended  chan struct{} // closed when the accept loop has ended
	fill   []net.Conn
	conns  map[net.Conn]bool // of clients and of the target
}

// New returns a gate before a target such as 127.0.0.1:6443. Close ends it.
func New(target string) (*Gate, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a gate: %w", err)
	}
	g := &Gate{target: target, listener: listener.(*net.TCPListener), conns: map[net.Conn]bool{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.shutLocked(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return g, nil
}

// Address returns the address that clients connect to.
func (g *Gate) Address() string { return g.listener.Addr().String() }

// Set opens or shuts the gate. Shutting it ends all connections.
func (g *Gate) Set(open bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.open == open {
		return nil
	}
	if open {
		return g.openLocked()
	}
	return g.shutLocked()
}

func (g *Gate) openLocked() error {
	g.releaseFill()
	if err := g.listen(backlog); err != nil {
		return err
	}
	if err := g.listener.SetDeadline(time.Time{}); err != nil {
		return err
	}
	g.open, g.ended = true, make(chan struct{})
	ended := g.ended
	g.work.Go(func() {
		defer close(ended)
		g.accept()
	})
	return nil
}

// shutLocked fills the backlog of the listening socket with connections of its own. The kernel then drops the packets with which others
// begin a connection. The port stays in use.
func (g *Gate) shutLocked() error {
	if g.open {
		g.open = false
		if err := g.listener.SetDeadline(time.Unix(1, 0)); err != nil {
			return err
		}
		ended := g.ended
		g.mu.Unlock()
		<-ended
		g.mu.Lock()
		for c := range g.conns {
			reset(c)
		}
	}
	if err := g.listen(1); err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: fullAfter}
	for range fillers {
		c, err := dialer.Dial("tcp4", g.Address())
		if timedOut(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("shutting the gate %s: %w", g.Address(), err)
		}
		g.fill = append(g.fill, c)
	}
	return fmt.Errorf("shutting the gate %s: its backlog is not full after %d connections", g.Address(), fillers)
}

func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

func (g *Gate) releaseFill() {
	for _, c := range g.fill {
		reset(c)
	}
	g.fill = nil
}

// listen changes the backlog of the socket.
func (g *Gate) listen(backlog int) error {
	raw, err := g.listener.SyscallConn()
	if err != nil {
		return err
	}
	var listening error
	err = raw.Control(func(fd uintptr) { listening = syscall.Listen(int(fd), backlog) })
	return errors.Join(err, listening)
}

// reset ends a connection at once.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (g *Gate) accept() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return // shut or closed
		}
		if !g.keep(c) {
			reset(c)
			continue
		}
		g.work.Go(func() { g.forward(c) })
	}
}

// keep remembers a connection, which Set and Close end.
func (g *Gate) keep(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || !g.open {
		return false
	}
	g.conns[c] = true
	return true
}

func (g *Gate) drop(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// forward copies between a client and the target until both have ended. If the target does not answer, the client's connection is reset.
func (g *Gate) forward(client net.Conn) {
	defer g.drop(client)
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := dialer.DialContext(ctx, "tcp4", g.target)
	if err != nil || !g.keep(server) {
		if err == nil {
			reset(server)
		}
		reset(client)
		return
	}
	defer g.drop(server)
	var both sync.WaitGroup
	for _, pair := range [][2]*net.TCPConn{{server.(*net.TCPConn), client.(*net.TCPConn)}, {client.(*net.TCPConn), server.(*net.TCPConn)}} {
		both.Go(func() {
			to, from := pair[0], pair[1]
			if _, err := io.Copy(to, from); err != nil {
				reset(to)
				return
			}
			_ = to.CloseWrite()
		})
	}
	both.Wait()
	_ = server.Close()
	_ = client.Close()
}

// Close ends the gate and all its connections.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.releaseFill()
	_ = g.listener.Close()
	for c := range g.conns {
		reset(c)
	}
	g.mu.Unlock()
	g.work.Wait()
}
