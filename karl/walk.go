package karl

import "slices"

// Walk calls visit for n and all nodes below it, a node before those below it
// and those in the order of the text. Where visit returns false, the nodes
// below are left out. Depth costs no stack, so a sum of a million terms is no
// danger.
func Walk(n Node, visit func(Node) bool) {
	if n == nil {
		return
	}
	stack := []Node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !visit(n) {
			continue
		}
		first := len(stack)
		stack = appendChildren(stack, n)
		slices.Reverse(stack[first:])
	}
}

// appendChildren appends the nodes directly below n that are there.
func appendChildren(list []Node, n Node) []Node {
	add := func(nodes ...Node) {
		for _, n := range nodes {
			if n != nil {
				list = append(list, n)
			}
		}
	}
	switch n := n.(type) {
	case *Index:
		add(n.X, n.At)
	case *Paren:
		add(n.X)
	case *Unary:
		add(n.X)
	case *IncDec:
		add(n.X)
	case *Binary:
		add(n.X, n.Y)
	case *Assign:
		add(n.X, n.Y)
	case *Sequence:
		add(n.Stmts...)
	case *Array:
		add(n.Elems...)
	case *Call:
		add(n.Args...)
	case *SystemCall:
		add(n.Args...)
	case *Loop:
		add(n.Var, n.Start, n.Step, n.Stop)
		if n.Body != nil {
			add(n.Body)
		}
	}
	return list
}
