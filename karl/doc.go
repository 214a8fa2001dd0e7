// Package karl is the language KaRL: its syntax, its values and its errors.
//
// [Parse] turns a text into a [Program], a tree with places that [Walk] visits
// and [Program.String] turns back into text. It finds every fault in a text
// that can be found without running it, up to 20, and says where and what would
// be right:
//
//	program, err := karl.Parse("patrol.karl", ".x > 10 => ++count")
//	if err != nil {
//		var faults karl.ErrorList
//		errors.As(err, &faults)
//		fmt.Println(faults[0])           // patrol.karl:1:4: …
//		fmt.Println(faults[0].Snippet()) // the line, and carets under the fault
//	}
//
// A [Value] is what variables hold and expressions return. The package knows
// how operators combine values, and what the language prints for them, but not
// where variables live: to run a program, bind it to a knowledge base with
// knowledge.Base.Compile or Bind.
//
// [Format] gives a text the layout that all programs share, and [Check] says what
// is likely wrong in a program that parses; doc/check.md has all of its findings.
//
// A text may come from anywhere. Its size, the depth of its nesting and the
// length of its statements are limited, see [Parser], and the time to parse it
// grows with its length, whatever it says.
package karl
