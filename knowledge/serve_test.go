package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/madara-go/madara/karl"
	"github.com/madara-go/madara/knowledge"
	"github.com/madara-go/madara/transport"
	"github.com/madara-go/madara/transport/inproc"
	"github.com/madara-go/madara/transport/tcp"
)

// remote serves a base and dials it.
func remote(t testing.TB, kb *knowledge.Base, r *knowledge.Rules) *knowledge.Remote {
	t.Helper()
	server, err := tcp.NewControl("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := tcp.NewControl("", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	if _, err := kb.Serve(server, r); err != nil {
		t.Fatal(err)
	}
	return knowledge.Dial(client, server.LocalAddr().String())
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestRemote(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	ctx, r := soon(t), remote(t, kb, &knowledge.Rules{Evaluate: true})
	for name, v := range map[string]karl.Value{
		"i": karl.Int(-5), "d": karl.Float(2.5), "s": karl.String("a\x00b"), "empty": karl.String(""),
		"is": karl.Ints([]int64{1, 2}), "ds": karl.Floats([]float64{0.5}), "file": karl.File(karl.KindText, []byte("text")),
	} {
		if err := r.Set(ctx, name, v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		here := kb.Get(name)
		there, err := r.Get(ctx, name)
		if err != nil || !there.Equal(v) || !here.Equal(v) {
			t.Errorf("%s: %v, here %v, want %v, %v", name, there, here, v, err)
		}
	}
	if v, err := r.Get(ctx, "nothing"); err != nil || v.Exists() {
		t.Errorf("nothing: %v, %v", v, err)
	}
	if _, ok, err := r.Lookup(ctx, "nothing"); err != nil || ok {
		t.Errorf("nothing: %t, %v", ok, err)
	}
	here, _ := kb.Lookup("i")
	if there, ok, err := r.Lookup(ctx, "i"); err != nil || !ok || there.Clock != here.Clock || there.Time == 0 || !there.Value.Equal(here.Value) {
		t.Errorf("i: %+v here, %+v there, %v", here, there, err)
	}
	if v, err := r.Evaluate(ctx, "i += 7; i * 2"); err != nil || !v.Equal(karl.Int(4)) {
		t.Errorf("evaluate: %v, %v", v, err)
	}
	if v, err := r.Evaluate(ctx, "nothing"); err != nil || v.Exists() {
		t.Errorf("evaluate to nothing: %v, %v", v, err)
	}
	var names []string
	for u, err := range r.All(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, u.Name)
	}
	if want := []string{"d", "ds", "empty", "file", "i", "is", "s"}; !slices.Equal(names, want) {
		t.Errorf("all are %v, want %v", names, want)
	}
	go func() { kb.Set("go", karl.Int(1)) }()
	if v, err := r.Wait(ctx, "go && i > 0"); err != nil || !v.IsTrue() {
		t.Errorf("wait: %v, %v", v, err)
	}
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Wait(short, "never"); !errors.Is(err, transport.ErrTimeout) || !errors.Is(err, knowledge.ErrTimeout) {
		t.Errorf("wait for what does not come: %v", err)
	}
	kb.Close()
	if _, err := r.Get(ctx, "i"); !errors.Is(err, transport.ErrMethod) {
		t.Errorf("after Close: %v", err)
	}
}

func TestRemoteErrors(t *testing.T) {
	kb := knowledge.New(knowledge.WithSleep())
	defer kb.Close()
	kb.SetQuality("q", 5)
	kb.Set("q", karl.Int(1))
	kb.SetQuality("q", 1)
	ctx, r := soon(t), remote(t, kb, &knowledge.Rules{Evaluate: true, MaxSteps: 1000})
	get := func(name string) error { _, err := r.Get(ctx, name); return err }
	evaluate := func(src string) error { _, err := r.Evaluate(ctx, src); return err }
	for _, c := range []struct {
		err, want error
		text      string
	}{
		{get(""), knowledge.ErrName, "empty"},
		{get("a{b}"), knowledge.ErrName, "braces"},
		{r.Set(ctx, "", karl.Int(1)), knowledge.ErrName, "empty"},
		{r.Set(ctx, "x", karl.Value{}), knowledge.ErrKind, "nothing"},
		{r.Set(ctx, "q", karl.Int(1)), knowledge.ErrQuality, "quality"},
		{evaluate(".i[0->1000000) (++x)"), knowledge.ErrLimit, "1000 steps"},
		{evaluate("f(1)"), knowledge.ErrUndefined, "1:1"},
		{evaluate("#sleep(30)"), knowledge.ErrLimit, "100ms"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("got %v, want %v with %q", c.err, c.want, c.text)
		}
	}
	var remote *transport.RemoteError
	if err := evaluate("1 +"); !errors.As(err, &remote) || !strings.Contains(remote.Message, "1:") {
		t.Errorf("a fault in the text: %v", err)
	}
	for _, d := range []time.Duration{-1, 2 * time.Minute} {
		if _, err := kb.Serve(nil, &knowledge.Rules{MaxTime: d}); !errors.Is(err, transport.ErrSettings) {
			t.Errorf("MaxTime %v: %v", d, err)
		}
	}
	null := knowledge.New(knowledge.WithNullLock())
	if _, err := null.Serve(nil, nil); !errors.Is(err, knowledge.ErrNullLock) {
		t.Error(err)
	}
}

func TestRemoteRules(t *testing.T) {
	rules := map[string]*knowledge.Rules{
		"nil": nil,
		"some": {
			Get: []string{"a", ".open"}, Set: []string{}, Snapshot: []string{"a"}, Wait: []string{"a"},
			Allow: func(source, method, name string) bool { return source != "" && name != "asked" },
		},
		"all": {Get: []string{"", "."}, Set: []string{"", "."}, Evaluate: true},
	}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			kb := knowledge.New()
			defer kb.Close()
			for _, name := range []string{"a", "asked", "b", ".open", ".shut"} {
				kb.Set(name, karl.Int(1))
			}
			kb.Set("a1", karl.Int(1))
			ctx, to := soon(t), remote(t, kb, r)
			verdict := func(err error) string {
				switch {
				case err == nil:
					return "yes"
				case errors.Is(err, knowledge.ErrAccess):
					return "no"
				}
				return err.Error()
			}
			var got []string
			for _, name := range []string{"a", "asked", "b", ".open", ".shut"} {
				_, err := to.Get(ctx, name)
				got = append(got, verdict(err), verdict(to.Set(ctx, name, karl.Int(1))))
			}
			for _, src := range []string{"a", "b", "a && .shut", "++a", "a{b}", "#size('x')", "f()", ".x[0->1) (1)"} {
				_, err := to.Wait(ctx, src)
				got = append(got, verdict(err))
			}
			_, err := to.Evaluate(ctx, "a")
			got = append(got, verdict(err))
			other := knowledge.New()
			defer other.Close()
			_, err = other.Join(ctx, to, "b")
			got = append(got, verdict(err))
			for u, err := range to.All(ctx, "") {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, u.Name)
			}
			want := map[string]string{
				"nil":  "yes yes yes yes yes yes no no no no | yes yes no no no no no no | no | yes | a a1 asked b",
				"some": "yes no no no no no yes no no no | yes no no no no no no no | no | no | a a1 asked",
				"all":  "yes yes yes yes yes yes yes yes yes yes | yes yes yes yes yes yes 1:1 yes | yes | yes | a a1 asked b",
			}[name]
			fields := strings.Fields(strings.ReplaceAll(want, "|", ""))
			if len(fields) != len(got) {
				t.Fatalf("got %q, want %q", got, fields)
			}
			for i, w := range fields {
				if g := got[i]; g != w && !(w == "1:1" && strings.Contains(g, w)) {
					t.Errorf("answer %d is %q, want %q", i, g, w)
				}
			}
		})
	}
}

// TestRemoteWaits waits more often than the rules allow.
func TestRemoteWaits(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	ctx, r := soon(t), remote(t, kb, &knowledge.Rules{Waits: 4})
	results := make(chan error, 50)
	for range cap(results) {
		go func() { _, err := r.Wait(ctx, "go"); results <- err }()
	}
	for range cap(results) - 5 {
		if err := <-results; !errors.Is(err, transport.ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
	kb.Set("go", karl.Int(1))
	for range 5 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestWaitMakesNoNames sends conditions with names that nobody may use.
func TestWaitMakesNoNames(t *testing.T) {
	kb := knowledge.New(knowledge.WithLimits(knowledge.Limits{Variables: 10}))
	defer kb.Close()
	ctx, r := soon(t), remote(t, kb, &knowledge.Rules{Wait: []string{"a"}})
	for i := range 100 {
		if _, err := r.Wait(ctx, fmt.Sprint("x", i)); !errors.Is(err, knowledge.ErrAccess) {
			t.Fatal(err)
		}
	}
	if err := kb.Set("y", karl.Int(1)); err != nil {
		t.Error(err)
	}
}

// TestSnapshotPages reads more than one response can hold.
func TestSnapshotPages(t *testing.T) {
	kb := knowledge.New()
	defer kb.Close()
	big := karl.String(strings.Repeat("x", 1<<20))
	for i := range 20 {
		kb.Set(fmt.Sprintf("v%02d", i), big)
	}
	kb.Set("u", karl.Int(1))
	kb.Set("w", karl.Int(1))
	kb.Set("huge", karl.String(strings.Repeat("x", 6<<20)))
	n := 0
	for u, err := range remote(t, kb, nil).All(soon(t), "v") {
		if err != nil || u.Name != fmt.Sprintf("v%02d", n) || u.Value.Len() != big.Len() {
			t.Fatal(n, u.Name, err)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d variables, want 20", n)
	}
	for u, err := range remote2(t, kb).All(soon(t), "h") {
		if err != nil || u.Value.Len() != 6<<20 {
			t.Error(u.Name, err)
		}
	}
}

func remote2(t testing.TB, kb *knowledge.Base) *knowledge.Remote {
	n := inproc.New()
	server, _ := n.OpenControl("base", nil)
	client, _ := n.OpenControl("client", nil)
	t.Cleanup(func() { client.Close(); server.Close() })
	if _, err := kb.Serve(server, nil); err != nil {
		t.Fatal(err)
	}
	return knowledge.Dial(client, "base")
}

// TestJoinWithoutAGap lets a base come late to others that write all the time.
func TestJoinWithoutAGap(t *testing.T) {
	n := inproc.New()
	open := func() *knowledge.Base {
		event, err := n.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		kb := knowledge.New()
		t.Cleanup(func() { kb.Close(); event.Close() })
		if _, err := kb.Attach(event, &knowledge.Sharing{Depth: 10_000}); err != nil {
			t.Fatal(err)
		}
		return kb
	}
	old := open()
	for i := range 500 {
		old.Evaluate(fmt.Sprintf("before%d = %d", i, i), nil)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				old.Evaluate(fmt.Sprintf("now%d = %d; turn = %d", i%50, i, i), nil)
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	late := open()
	to := remote2(t, old)
	if taken, err := late.Join(soon(t), to, ""); err != nil || taken < 500 {
		t.Fatalf("%d taken, %v", taken, err)
	}
	for i := range 500 {
		if v := late.Get(fmt.Sprint("before", i)); !v.Equal(karl.Int(int64(i))) {
			t.Fatalf("before%d is %v", i, v)
		}
	}
	time.Sleep(20 * time.Millisecond)
	close(stop)
	writing.Wait()
	if _, err := late.Wait(soon(t), fmt.Sprintf("turn == %v", old.Get("turn")), nil); err != nil {
		t.Fatalf("%v: %v, want %v", err, late.Get("turn"), old.Get("turn"))
	}
	for name, r := range old.All("") {
		if v := late.Get(name); !v.Equal(r.Value) {
			t.Errorf("%s is %v, want %v", name, v, r.Value)
		}
	}
	// What is older than what is there is not taken.
	if taken, err := late.Join(soon(t), to, "nothing"); err != nil || taken != 0 {
		t.Errorf("%d taken, %v", taken, err)
	}
}
