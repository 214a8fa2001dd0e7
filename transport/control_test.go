//go:build unix

package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/tcp"
	"github.com/madara-go/madara/transport/unix"
)

// controls opens a client and a server of each kind of link.
func controls() []struct {
	name string
	open func(t testing.TB) (client, server transport.Control, target string)
} {
	return []struct {
		name string
		open func(t testing.TB) (client, server transport.Control, target string)
	}{
		{"inproc", func(testing.TB) (transport.Control, transport.Control, string) {
			n := inproc.New()
			return must(n.OpenControl("client", nil)), must(n.OpenControl("server", nil)), "server"
		}},
		{"unix", func(t testing.TB) (transport.Control, transport.Control, string) {
			path := filepath.Join(t.TempDir(), "s")
			return must(unix.NewControl("", nil)), must(unix.NewControl(path, nil)), path
		}},
		{"tcp", func(t testing.TB) (transport.Control, transport.Control, string) {
			s := must(tcp.NewControl("127.0.0.1:0", nil))
			return must(tcp.NewControl("", nil)), s, s.LocalAddr().String()
		}},
		{"tls", func(t testing.TB) (transport.Control, transport.Control, string) {
			config := &tcp.Settings{TLS: certificates(t)}
			s := must(tcp.NewControl("127.0.0.1:0", config))
			return must(tcp.NewControl("", config)), s, s.LocalAddr().String()
		}},
	}
}

func eachControl(t *testing.T, test func(t *testing.T, client, server transport.Control, target string)) {
	for _, c := range controls() {
		t.Run(c.name, func(t *testing.T) {
			client, server, target := c.open(t)
			t.Cleanup(func() { client.Close(); server.Close() })
			test(t, client, server, target)
		})
	}
}

func echo(_ context.Context, r *transport.Request) ([]byte, error) {
	return bytes.Clone(r.Payload), nil
}

func serve(t testing.TB, c transport.Control, method string, o *transport.ServeOptions, handle transport.Handler) transport.Service {
	t.Helper()
	s, err := c.Serve(method, o, handle)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCallEchoes(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		serve(t, server, "echo", nil, echo)
		serve(t, server, "length", nil, func(_ context.Context, r *transport.Request) ([]byte, error) {
			return fmt.Append(nil, len(r.Payload), r.Method, r.Priority, r.Source != ""), nil
		})
		for _, size := range []int{0, 1, 64, 32<<10 - 1, 32 << 10, 32<<10 + 1, 1 << 20, 5<<20 + 3} {
			request := make([]byte, size)
			for i := range request {
				request[i] = byte(i * 7)
			}
			got, err := client.Call(deadline(t), target, "echo", request, nil)
			if err != nil || !bytes.Equal(got, request) {
				t.Fatalf("%d bytes: %d came back, %v", size, len(got), err)
			}
		}
		got, err := client.Call(deadline(t), target, "length", make([]byte, 40_000), &transport.CallOptions{Priority: transport.Urgent})
		if want := "40000length2true"; err != nil || strings.ReplaceAll(string(got), " ", "") != want {
			t.Fatalf("got %q, want %q, %v", got, want, err)
		}
		if s := client.Stats(); s.Calls != 9 || s.Pending != 0 || s.Dropped() != 0 {
			t.Errorf("client: %v", s)
		}
		if s := server.Stats(); s.Served != 9 || s.Dropped() != 0 {
			t.Errorf("server: %v", s)
		}
	})
}

// TestPayloadLimits gives both ends another limit than the default, and than each
// other.
func TestPayloadLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	open := func(listen string, limit int) transport.Control {
		return must(unix.NewControl(listen, &unix.Settings{Settings: transport.Settings{MaxPayload: limit}}))
	}
	client, server := open("", 1000), open(path, 100_000)
	defer client.Close()
	defer server.Close()
	wide := open("", transport.MaxPayloadSize)
	defer wide.Close()
	serve(t, server, "zeros", nil, func(_ context.Context, r *transport.Request) ([]byte, error) {
		n, err := strconv.Atoi(string(bytes.TrimRight(r.Payload, "\x00")))
		return make([]byte, n), err
	})
	for _, c := range []struct {
		from          transport.Control
		request, size int
		want          error
	}{
		{client, 1000, 1000, nil},
		{client, 1001, 1, transport.ErrTooLarge},
		{client, 10, 1001, transport.ErrTooLarge},
		{client, 10, 100_000, transport.ErrTooLarge},
		{client, 10, 100_001, transport.ErrTooLarge},
		{client, 10, 1000, nil}, // over the same connection
		{wide, 100_000, 100_000, nil},
		{wide, 100_001, 1, transport.ErrTooLarge},
		{wide, 10, 100_001, transport.ErrTooLarge},
	} {
		request := append(strconv.AppendInt(nil, int64(c.size), 10), make([]byte, c.request)...)[:c.request]
		got, err := c.from.Call(deadline(t), path, "zeros", request, nil)
		if !errors.Is(err, c.want) || err == nil && len(got) != c.size {
			t.Errorf("%d bytes to be answered with %d: %d, %v", c.request, c.size, len(got), err)
		}
	}
	if n := client.Stats().Peers; n != 1 {
		t.Errorf("%d connections", n)
	}
	if _, err := tcp.NewControl("", &tcp.Settings{Settings: transport.Settings{MaxPayload: transport.MaxPayloadSize + 1}}); !errors.Is(err, transport.ErrSettings) {
		t.Errorf("got %v", err)
	}
}

func TestCallsTogether(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		serve(t, server, "echo", &transport.ServeOptions{Workers: 8, Queue: 1000}, echo)
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				request := bytes.Repeat([]byte{byte(i)}, 1+i*5000)
				for range 20 {
					got, err := client.Call(deadline(t), target, "echo", request, &transport.CallOptions{Priority: transport.Priority(i%4 - 1)})
					if err != nil || !bytes.Equal(got, request) {
						t.Errorf("call of %d: %d bytes, %v", i, len(got), err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

func TestCallErrors(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		ctx := deadline(t)
		serve(t, server, "fails", nil, func(context.Context, *transport.Request) ([]byte, error) { return nil, errors.New("no hands") })
		serve(t, server, "panics", nil, func(context.Context, *transport.Request) ([]byte, error) { panic("oh") })
		serve(t, server, "exits", nil, func(context.Context, *transport.Request) ([]byte, error) { runtime.Goexit(); return nil, nil })
		serve(t, server, "busy", nil, func(context.Context, *transport.Request) ([]byte, error) { return nil, transport.ErrBusy })
		serve(t, server, "large", nil, func(context.Context, *transport.Request) ([]byte, error) {
			return make([]byte, server.MaxPayload()+1), nil
		})
		serve(t, server, "echo", nil, echo)
		for range 6 { // more often than there are workers
			for method, message := range map[string]string{"fails": "no hands", "panics": "handler panicked: oh", "exits": "ended its goroutine"} {
				_, err := client.Call(ctx, target, method, nil, nil)
				var remote *transport.RemoteError
				if !errors.As(err, &remote) || remote.Method != method || remote.Target != target || !strings.Contains(remote.Message, message) {
					t.Fatalf("%s: %v", method, err)
				}
			}
		}
		for _, c := range []struct {
			ctx            context.Context
			target, method string
			request        []byte
			options        *transport.CallOptions
			want           error
		}{
			{ctx, target, "nothing", nil, nil, transport.ErrMethod},
			{ctx, target, "", nil, nil, transport.ErrMethod},
			{ctx, target, strings.Repeat("m", 256), nil, nil, transport.ErrMethod},
			{ctx, target, "busy", nil, nil, transport.ErrBusy},
			{ctx, target, "large", nil, nil, transport.ErrTooLarge},
			{ctx, target, "echo", make([]byte, client.MaxPayload()+1), nil, transport.ErrTooLarge},
			{ctx, target, "echo", nil, &transport.CallOptions{Priority: 3}, transport.ErrSettings},
			{ctx, "127.0.0.1:1", "echo", nil, nil, transport.ErrUnreachable},
			{done(context.Canceled), target, "echo", nil, nil, context.Canceled},
			{done(io.ErrNoProgress), target, "echo", nil, nil, io.ErrNoProgress},
			{over(t), target, "echo", nil, nil, transport.ErrTimeout},
			{over(t), target, "echo", nil, nil, context.DeadlineExceeded},
		} {
			if _, err := client.Call(c.ctx, c.target, c.method, c.request, c.options); !errors.Is(err, c.want) {
				t.Errorf("%s of %s: %v, want %v", c.method, c.target, err, c.want)
			}
		}
		for _, err := range []error{
			second(server.Serve("echo", nil, echo)), second(server.Serve("", nil, echo)),
		} {
			if !errors.Is(err, transport.ErrMethod) {
				t.Errorf("Serve: %v", err)
			}
		}
		for _, o := range []transport.ServeOptions{{Workers: -1}, {Queue: -1}, {Workers: transport.MaxWorkers + 1}, {Queue: transport.MaxQueue + 1}} {
			if _, err := server.Serve("x", &o, echo); !errors.Is(err, transport.ErrSettings) {
				t.Errorf("Serve with %+v: %v", o, err)
			}
		}
		if n := server.Stats().Drops[transport.DropPanic]; n != 12 {
			t.Errorf("%d panics and exits counted, want 12", n)
		}
		server.Close()
		if _, err := client.Call(ctx, target, "echo", nil, nil); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("after the server closed: %v", err)
		}
		if _, err := server.Serve("y", nil, echo); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Serve when closed: %v", err)
		}
		client.Close()
		if _, err := client.Call(ctx, target, "echo", nil, nil); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("when closed: %v", err)
		}
	})
}

func done(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func over(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), -1)
	t.Cleanup(cancel)
	return ctx
}

// TestTimeouts calls what does not answer in time: the handler is told, the late
// responses are counted, those that waited are not handled, and nothing is left.
func TestTimeouts(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		var ended, began atomic.Int64
		serve(t, server, "late", &transport.ServeOptions{Workers: 2, Queue: 10_000}, func(ctx context.Context, _ *transport.Request) ([]byte, error) {
			began.Add(1)
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > patience || time.Since(at) > time.Second {
				t.Errorf("handled, although its time was over: %v, %t", time.Until(at), ok)
			}
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("ctx ended with %v", ctx.Err())
			}
			ended.Add(1)
			return nil, nil
		})
		serve(t, server, "echo", nil, echo)
		const calls = 5000
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if _, err := client.Call(ctx, target, "late", []byte("x"), nil); !errors.Is(err, transport.ErrTimeout) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if n := client.Stats().Pending; n != 0 {
			t.Errorf("%d calls are pending", n)
		}
		eventually(t, "all are done with", func() bool {
			return ended.Load() == began.Load() && uint64(began.Load())+server.Stats().Drops[transport.DropExpired] == server.Stats().Received
		})
		got, err := client.Call(deadline(t), target, "echo", []byte("mine"), nil)
		if err != nil || string(got) != "mine" {
			t.Errorf("after that: %q, %v", got, err)
		}
	})
}

func TestLateResponsesAreCounted(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		answer := make(chan struct{})
		serve(t, server, "slow", nil, func(ctx context.Context, r *transport.Request) ([]byte, error) {
			<-answer
			return make([]byte, 100_000), nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := client.Call(ctx, target, "slow", nil, nil); !errors.Is(err, transport.ErrTimeout) {
			t.Error(err)
		}
		close(answer)
		eventually(t, "the late response is counted", func() bool { return client.Stats().Drops[transport.DropLate] == 1 })
	})
}

func TestCancelReachesTheHandler(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		entered, left := make(chan bool), make(chan error)
		serve(t, server, "wait", nil, func(ctx context.Context, _ *transport.Request) ([]byte, error) {
			entered <- true
			<-ctx.Done()
			left <- ctx.Err()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { _, err := client.Call(ctx, target, "wait", nil, nil); result <- err }()
		<-entered
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler saw %v", err)
		}
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller got %v", err)
		}
		// A Control that is closed ends the contexts of its handlers.
		go func() { _, err := client.Call(context.Background(), target, "wait", nil, nil); result <- err }()
		<-entered
		go server.Close()
		<-left
		if err := <-result; !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("the caller got %v", err)
		}
	})
}

// TestQuickThenNever calls what is answered at once, and then what is not: who
// called before has read his answer himself.
func TestQuickThenNever(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		serve(t, server, "echo", nil, echo)
		serve(t, server, "never", nil, func(ctx context.Context, _ *transport.Request) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for _, end := range []func() (context.Context, context.CancelFunc){
			func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), 5*time.Millisecond)
			},
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(5*time.Millisecond, cancel)
				return ctx, cancel
			},
		} {
			for range 20 {
				if got, err := client.Call(deadline(t), target, "echo", []byte("x"), nil); err != nil || string(got) != "x" {
					t.Fatalf("%q, %v", got, err)
				}
			}
			ctx, cancel := end()
			result := make(chan error, 1)
			go func() { _, err := client.Call(ctx, target, "never", nil, nil); result <- err }()
			select {
			case err := <-result:
				if err == nil {
					t.Error("answered")
				}
			case <-time.After(patience):
				t.Fatal("the caller is not told")
			}
			cancel()
		}
	})
}

// TestLossIsSeenWithoutCalls closes a server whose client calls no more.
func TestLossIsSeenWithoutCalls(t *testing.T) {
	for _, c := range controls()[1:] {
		t.Run(c.name, func(t *testing.T) {
			client, server, target := c.open(t)
			defer client.Close()
			serve(t, server, "echo", nil, echo)
			for range 20 {
				if _, err := client.Call(deadline(t), target, "echo", nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			if client.Stats().Peers != 1 {
				t.Errorf("%d peers", client.Stats().Peers)
			}
			server.Close()
			eventually(t, "the connection is gone", func() bool { return client.Stats().Peers == 0 })
		})
	}
}

func TestBusy(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		entered, leave := make(chan bool, 100), make(chan bool)
		serve(t, server, "work", &transport.ServeOptions{Workers: 2, Queue: 3}, func(context.Context, *transport.Request) ([]byte, error) {
			entered <- true
			<-leave
			return nil, nil
		})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := client.Call(deadline(t), target, "work", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		<-entered
		<-entered
		var busy, ok atomic.Int64
		for range 10 {
			all.Go(func() {
				switch _, err := client.Call(deadline(t), target, "work", nil, nil); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, transport.ErrBusy):
					busy.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		eventually(t, "7 are refused", func() bool { return busy.Load() == 7 })
		close(leave)
		all.Wait()
		if ok.Load() != 3 || server.Stats().Drops[transport.DropBusy] != 7 {
			t.Errorf("%d served, %v", ok.Load(), server.Stats())
		}
	})
}

func TestRetryOnlyWhenIdempotent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	client := must(unix.NewControl("", nil))
	defer client.Close()
	var handled atomic.Int64
	start := func(die bool) (*atomic.Bool, transport.Control) {
		dead := &atomic.Bool{}
		server := must(unix.NewControl(path, nil))
		serve(t, server, "m", nil, func(ctx context.Context, _ *transport.Request) ([]byte, error) {
			handled.Add(1)
			if die {
				dead.Store(true)
				<-ctx.Done() // of the server that is closed
			}
			return []byte("ok"), nil
		})
		return dead, server
	}
	for _, idempotent := range []bool{false, true} {
		handled.Store(0)
		dead, server := start(true)
		result := make(chan error, 1)
		go func() {
			_, err := client.Call(deadline(t), path, "m", nil, &transport.CallOptions{Idempotent: idempotent})
			result <- err
		}()
		eventually(t, "the handler runs", dead.Load)
		server.Close()
		_, next := start(false)
		err := <-result
		if idempotent && (err != nil || handled.Load() != 2) {
			t.Errorf("idempotent: %v after %d times", err, handled.Load())
		}
		if !idempotent && (!errors.Is(err, transport.ErrUnreachable) || handled.Load() != 1) {
			t.Errorf("not idempotent: %v after %d times", err, handled.Load())
		}
		next.Close()
	}
}

// TestNobodyServes calls where nothing listens, which is an error at once even
// for a call that may be sent again.
func TestNobodyServes(t *testing.T) {
	client := must(unix.NewControl("", nil))
	defer client.Close()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, idempotent := range []bool{false, true} {
		_, err := client.Call(context.Background(), missing, "m", nil, &transport.CallOptions{Idempotent: idempotent})
		if !errors.Is(err, transport.ErrUnreachable) || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("idempotent %t: %v", idempotent, err)
		}
	}
	// A server that dies and does not come back is named beside the time.
	path := filepath.Join(t.TempDir(), "s")
	server := must(unix.NewControl(path, nil))
	entered := make(chan struct{})
	serve(t, server, "m", nil, func(ctx context.Context, _ *transport.Request) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	result := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	go func() {
		_, err := client.Call(ctx, path, "m", nil, &transport.CallOptions{Idempotent: true})
		result <- err
	}()
	<-entered
	server.Close()
	if err := <-result; !errors.Is(err, transport.ErrTimeout) || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

// TestStrictPriority lets one worker of each class be busy and looks at who is next.
func TestStrictPriority(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		began := make(chan transport.Priority, 100)
		leave := map[transport.Priority]chan bool{}
		for p := transport.Background; p <= transport.Urgent; p++ {
			leave[p] = make(chan bool)
		}
		serve(t, server, "work", &transport.ServeOptions{Workers: 1, Queue: 10}, func(_ context.Context, r *transport.Request) ([]byte, error) {
			began <- r.Priority
			<-leave[r.Priority]
			return nil, nil
		})
		var all sync.WaitGroup
		call := func(p transport.Priority) {
			all.Go(func() {
				if _, err := client.Call(deadline(t), target, "work", nil, &transport.CallOptions{Priority: p}); err != nil {
					t.Error(err)
				}
			})
		}
		call(transport.High)
		<-began
		call(transport.High) // waits, and holds back what is lower
		eventually(t, "both are there", func() bool { return server.Stats().Received >= 2 })
		call(transport.Background)
		call(transport.Urgent)
		if p := <-began; p != transport.Urgent {
			t.Errorf("class %d began, want urgent", p)
		}
		held := time.Now()
		if p := <-began; p != transport.Background { // only by its age
			t.Errorf("class %d began, want background", p)
		}
		if waited := time.Since(held); waited < 50*time.Millisecond {
			t.Errorf("background waited %v, less than its age", waited)
		}
		for _, c := range leave {
			close(c)
		}
		all.Wait()
	})
}

func TestControlCloseFromHandlerPanics(t *testing.T) {
	eachControl(t, func(t *testing.T, client, server transport.Control, target string) {
		var service transport.Service
		service = serve(t, server, "close", nil, func(_ context.Context, r *transport.Request) ([]byte, error) {
			if string(r.Payload) == "service" {
				service.Close()
			}
			server.Close()
			return nil, nil
		})
		for _, what := range []string{"service", "control"} {
			_, err := client.Call(deadline(t), target, "close", []byte(what), nil)
			if err == nil || !strings.Contains(err.Error(), "Close called by") {
				t.Errorf("%s: %v", what, err)
			}
		}
		service.Close()
		service.Close()
		if _, err := client.Call(deadline(t), target, "close", nil, nil); !errors.Is(err, transport.ErrMethod) {
			t.Error(err)
		}
	})
}

// TestControlGarbage sends what is no frame.
func TestControlGarbage(t *testing.T) {
	good := append([]byte("MADARA-C"), 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7)
	with := func(more ...byte) []byte { return append(bytes.Clone(good), more...) }
	request := func(id, size byte, n int, part ...byte) []byte {
		body := append([]byte{0, 0, 0, 0, 0, 0, 0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, size, byte(n)}, part...)
		return append([]byte{0, 0, 0, byte(len(body) + 1), 10}, body...)
	}
	for name, bytes := range map[string][]byte{
		"http":             []byte("GET / HTTP/1.1\r\nHost: robot\r\n\r\n"),
		"another surface":  append([]byte("MADARA-E"), good[8:]...),
		"class":            append(append([]byte("MADARA-C"), 1, 4), good[10:]...),
		"huge frame":       with(255, 255, 255, 255, 10),
		"frame of nothing": with(0, 0, 0, 0, 0),
		"kind":             with(0, 0, 0, 1, 99),
		"short request":    with(0, 0, 0, 2, 10, 0),
		"short part":       with(0, 0, 0, 2, 11, 0),
		"short cancel":     with(0, 0, 0, 2, 12, 0),
		"method beyond":    with(request(1, 0, 9, 'e')...),
		"no method":        with(request(1, 0, 0)...),
		"more than said":   with(request(1, 0, 1, 'e', 'x')...),
		"twice":            with(append(request(1, 9, 1, 'e'), request(1, 9, 1, 'e')...)...),
		"part beyond":      with(append(request(1, 1, 1, 'e'), 0, 0, 0, 11, 11, 0, 0, 0, 0, 0, 0, 0, 1, 'x', 'y')...),
		"response":         with(0, 0, 0, 14, 13, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			c := must(tcp.NewControl("127.0.0.1:0", nil))
			defer c.Close()
			serve(t, c, "e", nil, echo)
			conn := must(net.Dial("tcp", c.LocalAddr().String()))
			defer conn.Close()
			conn.Write(bytes)
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection was not closed")
			}
			eventually(t, "it is counted", func() bool { return c.Stats().Drops[transport.DropFrame] == 1 })
		})
	}
}

func TestCallAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's pools forget")
	}
	for _, c := range controls()[:3] {
		t.Run(c.name, func(t *testing.T) {
			client, server, target := c.open(t)
			defer server.Close()
			defer client.Close()
			answer := []byte("yes")
			serve(t, server, "m", nil, func(context.Context, *transport.Request) ([]byte, error) { return answer, nil })
			ctx, request := deadline(t), make([]byte, 64)
			if n := testing.AllocsPerRun(1000, func() {
				if _, err := client.Call(ctx, target, "m", request, nil); err != nil {
					t.Fatal(err)
				}
			}); n > 2 {
				t.Errorf("%v allocations a call, both ends together", n)
			}
		})
	}
}
