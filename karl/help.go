package karl

import (
	"slices"
	"strings"
)

// IsName reports whether s is a name without braces that can be assigned and
// called: letters, digits, _ and dots, not beginning like a number, and none of
// true, false, nan and inf.
func IsName(s string) bool {
	if s == "" || isReserved(s) || isDigit(s[0]) || s[0] == '.' && len(s) > 1 && isDigit(s[1]) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// systemHelp has one line for each of the language's own functions.
var systemHelp = map[string]string{
	"arg":                "#arg(n): argument n of the function that runs, from 0",
	"args":               "#args(): the number of its arguments",
	"buffer":             "#buffer(v): the bytes of a value as a file",
	"clear_var":          "#clear_var(name): unsets the variable of that name; 1 if it was known",
	"cos":                "#cos(x): cosine, radians",
	"delete_var":         "#delete_var(name): removes the variable of that name; 1 if it was known",
	"double":             "#double(v): v as a double",
	"doubles":            "#doubles(v): v as an array of doubles",
	"eval":               "#eval(text): the value of a program",
	"expand":             "#expand(text): the text with {name} replaced by values",
	"expand_env":         "#expand_env(text): the text with $(NAME) replaced from the environment",
	"fixed":              "#fixed(): doubles print as 12345.678000",
	"fragment":           "#fragment(v, first, last): part of a string, array or file, last included",
	"get_clock":          "#get_clock([variable]): the Lamport clock of the base or of a variable",
	"get_time":           "#get_time(): nanoseconds of the host's monotonic clock",
	"get_time_seconds":   "#get_time_seconds(): seconds of the calendar clock",
	"integer":            "#integer(v): v as an integer",
	"integers":           "#integers(v): v as an array of integers",
	"isinf":              "#isinf(x): 1 if x is infinite",
	"log_level":          "#log_level([n]): the level above which #print is silent",
	"pow":                "#pow(base, exponent): power",
	"precision":          "#precision([n]): the number of decimals that print, -1 for the default",
	"print":              "#print(text[, level]): prints the expanded text",
	"print_system_calls": "#print_system_calls([name]): prints this help",
	"rand_double":        "#rand_double([floor, ceiling]): a random double, 0 to 1 by default",
	"rand_int":           "#rand_int([floor, ceiling]): a random integer, both bounds included, 0 to 1 by default",
	"read_file":          "#read_file(path[, type]): the contents of a file",
	"scientific":         "#scientific(): doubles print as 1.234568e+04",
	"set_clock":          "#set_clock([variable,] n): raises the clock of the base, sets that of a variable",
	"sin":                "#sin(x): sine, radians",
	"size":               "#size(v): elements of an array, bytes of a file, length of a string + 1",
	"sleep":              "#sleep(seconds): sleeps, and returns how long",
	"sqrt":               "#sqrt(x): square root",
	"string":             "#string(v[, delimiter]): v as a string",
	"tan":                "#tan(x): tangent, radians",
	"to_host_dirs":       "#to_host_dirs(path): the path with the separators of this system",
	"type":               "#type(v): the number of the kind of v",
	"write_file":         "#write_file(path, v): writes v to a file; -1 if that failed",
}

// SystemCallHelp returns a line of help for one of the language's own functions,
// known by any of its names, with or without #; for "" or a name that is none of
// them, the lines of all, in order.
func SystemCallHelp(name string) string {
	if f, ok := systemFuncs[strings.TrimPrefix(name, "#")]; ok {
		return systemHelp[f.name] + "\n"
	}
	var lines []string
	for _, line := range systemHelp {
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
