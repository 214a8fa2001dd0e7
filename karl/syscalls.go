package karl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// systemFunc is one of the language's own functions.
type systemFunc struct {
	name        string // the name that the language goes by
	least, most int    // number of arguments
}

// systemFuncs has every name of every function.
var systemFuncs = func() map[string]systemFunc {
	table := map[string]systemFunc{}
	add := func(least, most int, names ...string) {
		for _, name := range names {
			table[name] = systemFunc{names[0], least, most}
		}
	}
	add(1, 1, "buffer", "to_buffer")
	add(1, 1, "clear_var", "clear_variable")
	add(1, 1, "delete_var", "delete_variable")
	add(1, 1, "cos")
	add(1, 1, "sin")
	add(1, 1, "tan")
	add(1, 1, "sqrt")
	add(2, 2, "pow")
	add(1, 1, "isinf")
	add(1, 1, "double", "to_double")
	add(1, 1, "doubles", "to_doubles")
	add(1, 1, "integer", "to_integer")
	add(1, 1, "integers", "to_integers")
	add(1, 2, "string", "to_string")
	add(1, 1, "eval", "evaluate")
	add(1, 1, "expand", "expand_statement")
	add(1, 1, "expand_env", "expand_envs")
	add(3, 3, "fragment")
	add(0, 1, "get_clock")
	add(1, 2, "set_clock")
	add(0, 0, "get_time", "get_time_ns", "get_time_nano")
	add(0, 0, "get_time_seconds", "get_time_s")
	add(0, 1, "log_level")
	add(0, 1, "precision", "set_precision")
	add(0, 0, "fixed", "set_fixed")
	add(0, 0, "scientific", "set_scientific")
	add(1, 2, "print")
	add(0, 1, "print_system_calls", "print_system_call")
	add(0, 3, "rand_double")
	add(0, 3, "rand_int", "rand_integer")
	add(1, 2, "read_file")
	add(2, 2, "write_file")
	add(1, 1, "size")
	add(1, 1, "sleep")
	add(1, 1, "to_host_dirs")
	add(1, 1, "type")
	add(1, 1, "arg")
	add(0, 0, "args")
	return table
}()

// systemCall parses a call of one of the language's own functions.
func (p *piece) systemCall() Node {
	at := p.pos
	name := p.tokens[at].Value[1:]
	if p.pos++; p.kind() != tokenOpenParen {
		p.pos = at
		p.failAt(at, at+1, "#%s needs parentheses for its arguments: #%s(…)", name, name)
		return nil
	}
	args, ok := p.list("argument")
	if !ok {
		return nil
	}
	n := &SystemCall{Span: p.span(at), Name: name, Args: args}
	f, ok := systemFuncs[name]
	if !ok {
		p.failAt(at, at+1, "unknown system call #%s%s", shorten(name), suggestion(name))
		return n
	}
	n.Func = f.name
	if len(args) < f.least || len(args) > f.most {
		p.failNode(n, "#%s takes %s, not %d", name, f.arguments(), len(args))
		return n
	}
	switch {
	case f.name == "get_clock" && len(args) == 1:
		p.variable(args[0], "#%s takes a variable, not %s", name)
	case f.name == "set_clock" && len(args) == 2:
		p.variable(args[0], "#%s of two arguments takes a variable as the first, not %s", name)
	}
	return n
}

// variable reports an argument that is not the plain name of a variable.
func (p *piece) variable(arg Node, format, function string) {
	if _, ok := Unparen(arg).(*Name); !ok && arg != faulty {
		p.failNode(arg, format, function, p.text(arg))
	}
}

// arguments says how many arguments the function takes.
func (f systemFunc) arguments() string {
	switch {
	case f.most == 0:
		return "no arguments"
	case f.least == f.most && f.most == 1:
		return "1 argument"
	case f.least == f.most:
		return strconv.Itoa(f.most) + " arguments"
	case f.least+1 == f.most:
		return strconv.Itoa(f.least) + " or " + strconv.Itoa(f.most) + " arguments"
	}
	return strconv.Itoa(f.least) + " to " + strconv.Itoa(f.most) + " arguments"
}

// suggestion returns ", did you mean #x?" for the nearest name, or "".
func suggestion(name string) string {
	if len(name) > 40 {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", max(len(name)/3, 1)+1
	for _, known := range systemNames() {
		if d := editDistance(name, known); d < least {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean #" + best + "?"
}

// systemNames returns the names of all system calls, shorter ones first.
func systemNames() []string {
	names := make([]string, 0, len(systemFuncs))
	for name := range systemFuncs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names
}

// editDistance counts the bytes to insert, delete or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
