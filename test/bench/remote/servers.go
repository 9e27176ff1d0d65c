package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
)

// slowness is how long the slow servers take for each response.
const slowness = 20 * time.Second

// server is several API servers that behave alike. They differ in their ports, one for each remote
// cluster.
type server struct {
	name      string
	addresses []string
	// attempts counts, for each address, the connections or requests so far.
	attempts []atomic.Int64
}

func newServer(name string) *server {
	return &server{name: name, addresses: make([]string, perServer), attempts: make([]atomic.Int64, perServer)}
}

// servers are all servers of remote clusters.
type servers struct {
	all       []*server // silent, dropping, slow
	authority []byte    // PEM

	stop    context.CancelFunc
	closing []func()
}

// newServers starts the servers. The slow ones stand before the bed's API server.
func newServers(b *bed.Bed) (_ *servers, err error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &servers{stop: stop}

	defer func() {
		if err != nil {
			s.close()
		}
	}()

	for _, start := range []func() (*server, error){
		s.startSilent,
		func() (*server, error) { return s.startDropping(ctx) },
		func() (*server, error) { return s.startSlow(ctx, b.Config()) },
	} {
		started, err := start()
		if err != nil {
			return nil, err
		}

		s.all = append(s.all, started)
	}

	return s, nil
}

func (s *servers) close() {
	s.stop()

	for _, c := range s.closing {
		c()
	}
}

// startSilent starts servers that accept connections and send nothing.
func (s *servers) startSilent() (*server, error) {
	silent := newServer("silent")

	for i := range perServer {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}

		s.closing = append(s.closing, func() { _ = listener.Close() })
		silent.addresses[i] = listener.Addr().String()

		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}

				silent.attempts[i].Add(1)

				// It ends with the client.
				go func() {
					_, _ = io.Copy(io.Discard, connection)
					_ = connection.Close()
				}()
			}
		}()
	}

	return silent, nil
}

// startDropping starts servers whose queue of connections is full, so the kernel drops the packets that
// begin further ones, as a firewall would.
func (s *servers) startDropping(ctx context.Context) (*server, error) {
	dropping := newServer("dropping")
	index := map[int]int{} // by port

	for i := range perServer {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}

		s.closing = append(s.closing, func() { _ = listener.Close() })

		if err := s.fill(listener.(*net.TCPListener)); err != nil {
			return nil, err
		}

		dropping.addresses[i] = listener.Addr().String()
		index[listener.Addr().(*net.TCPAddr).Port] = i
	}

	if _, err := connecting(); err != nil {
		return nil, fmt.Errorf("count the connections that are being made, which requires Linux: %w", err)
	}

	go dropping.watch(ctx, index)

	return dropping, nil
}

// fill fills the queue of a listener that accepts nothing.
func (s *servers) fill(listener *net.TCPListener) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}

	var shortened error
	if err := raw.Control(func(fd uintptr) { shortened = syscall.Listen(int(fd), 0) }); err != nil || shortened != nil {
		return errors.Join(err, shortened)
	}

	const most = 8
	for range most {
		connection, err := net.DialTimeout("tcp", listener.Addr().String(), 100*time.Millisecond)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return nil
		}

		if err != nil {
			return err
		}

		s.closing = append(s.closing, func() { _ = connection.Close() })
	}

	return fmt.Errorf("%s still accepts connections after %d of them", listener.Addr(), most)
}

// watch counts the connections that clients try to make to some ports, with their indexes.
func (s *server) watch(ctx context.Context, index map[int]int) {
	seen := map[connection]bool{}

	for ctx.Err() == nil {
		list, _ := connecting()
		for _, c := range list {
			if i, ok := index[c.to]; ok && !seen[c] {
				seen[c] = true

				s.attempts[i].Add(1)
			}
		}

		measure.Pause(ctx, pollInterval)
	}
}

// connection is a pair of ports.
type connection struct{ from, to int }

// connecting returns the connections of this machine that no packet has answered yet.
func connecting() ([]connection, error) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil, err
	}

	const synSent = "02" // include/net/tcp_states.h

	var found []connection

	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		// The number of the line, both ends, the state, and more.
		columns := strings.Fields(lines.Text())
		if len(columns) < 4 || columns[3] != synSent {
			continue
		}

		from, err := port(columns[1])
		to, err2 := port(columns[2])

		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}

		found = append(found, connection{from, to})
	}

	return found, nil
}

// port returns the port of an address such as 0100007F:1F90.
func port(address string) (int, error) {
	_, text, _ := strings.Cut(address, ":")
	number, err := strconv.ParseInt(text, 16, 32)

	return int(number), err
}

// startSlow starts servers that pass requests on to a real API server, as its administrator, and hold
// back each response.
func (s *servers) startSlow(ctx context.Context, config *rest.Config) (*server, error) {
	slow := newServer("slow")

	proxy, err := measure.Proxy(config)
	if err != nil {
		return nil, err
	}

	for i := range perServer {
		front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			slow.attempts[i].Add(1)

			select {
			case <-time.After(slowness):
				proxy.ServeHTTP(w, r)
			case <-r.Context().Done():
			case <-ctx.Done():
			}
		}))
		front.EnableHTTP2 = true
		front.Config.ErrorLog = proxy.ErrorLog
		front.StartTLS()

		s.closing = append(s.closing, front.CloseClientConnections, front.Close)
		s.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
		slow.addresses[i] = front.Listener.Addr().String()
	}

	return slow, nil
}

// counts returns the numbers of attempts so far, by server and address.
func (s *servers) counts() [][]int64 {
	all := make([][]int64, len(s.all))

	for i, server := range s.all {
		for j := range server.attempts {
			all[i] = append(all[i], server.attempts[j].Load())
		}
	}

	return all
}

// since describes the attempts since an earlier count.
func (s *servers) since(before [][]int64) string {
	text := make([]string, len(s.all))

	for i, each := range s.counts() {
		var total int64
		for j := range each {
			total += each[j] - before[i][j]
		}

		text[i] = fmt.Sprintf("%s %d", s.all[i].name, total)
	}

	return strings.Join(text, ", ")
}

// allTried polls until each address was tried since an earlier count.
func (s *servers) allTried(ctx context.Context, before [][]int64) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()

	for {
		untried := 0

		for i, each := range s.counts() {
			for j := range each {
				if each[j] == before[i][j] {
					untried++
				}
			}
		}

		if untried == 0 {
			return nil
		}

		if err := ctx.Err(); err != nil {
			return fmt.Errorf("the operator has not tried to reach %d remote clusters (attempts: %s): %w",
				untried, s.since(before), err)
		}

		measure.Pause(ctx, pollInterval)
	}
}
