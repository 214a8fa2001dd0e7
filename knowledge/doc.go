// Package knowledge is a knowledge base for robot programs: named variables,
// programs in KaRL that work on them, Go functions those programs call, and
// goroutines that wait until something is true.
//
//	kb := knowledge.New()
//	defer kb.Close()
//	kb.Set("battery", karl.Float(34.5))
//	kb.Define("distance", func(c *knowledge.Call) (karl.Value, error) {
//		return karl.Float(math.Hypot(c.Arg(0).Float(), c.Arg(1).Float())), nil
//	})
//	rules, err := kb.Compile("far = distance(x, y) > 4; (battery < 40 && far) => goal = 'charger'")
//	…
//	value, err := rules.Evaluate(nil)
//
// # The lock
//
// A [Base] has one lock. Each method takes it for as long as it works, and an
// evaluation is one hold of it from beginning to end: no other goroutine sees a
// program half done. [Base.Lock] and [Base.Update] hold it for several
// operations; those go through the [Guard] they give. Functions that programs
// call are given a Guard too ([Call.Guard]). A method of the base itself called
// from there panics and names both places. The lock is a critical section, not
// a transaction: an error does not undo what was written before it.
//
// # Variables
//
// A variable comes to be when it is written, and has no value after [Base.Clear]
// and [Base.Delete]; programs and handles that use it stay valid throughout. One
// whose name begins with a dot is local: it is never sent. Every other write
// marks its variable, and [Base.Evaluate], [Base.Wait] and [Base.Send] send what
// is marked; see [WithSink].
//
// # Waiting
//
// [Expression.Wait] and [Base.Await] sleep until a variable changes that the
// condition looked at. Nothing polls, unless the expression has effects.
package knowledge
