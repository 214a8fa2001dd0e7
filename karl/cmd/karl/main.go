// Command karl evaluates and runs programs of the language KaRL.
//
//	karl eval [--print] [--json] [--set NAME=VALUE]... EXPR...
//	karl eval --batch FILE
//	karl run [--every 100ms] [--for 5s] [--until EXPR] [--init EXPR] [--set NAME=VALUE]... FILE...
//	karl repl [NETWORK] [--set NAME=VALUE]... [FILE...]
//	karl watch NETWORK [--stats] [--json] [--for 5s] [PATTERN...]
//	karl pub NETWORK [--repeat N] [--every 1s] NAME=VALUE...
//	karl wait NETWORK [--within 5s] EXPR
//	karl check [--functions NAMES] [--variables NAMES] [--strict] [--json] FILE...
//	karl test [--junit FILE] FILE...
//	karl fmt [-l] [-w] [-d] FILE...
//	karl ast [--json | --dot] FILE
//	karl lsp
//	karl explain [--json] [--set NAME=VALUE]... [--init EXPR]... EXPR|FILE
//	karl packet [--json] [SECRETS] FILE...
//	karl keygen [--out FILE]
//	karl registry --udp HOST:PORT
//	karl doc [TOPIC]
//	karl get --control ADDR [--json] NAME...
//	karl set --control ADDR NAME=VALUE...
//	karl version
//
// eval evaluates its arguments, one after the other, in one knowledge base and
// prints the value of the last. run does the same with files, once or again and
// again, and prints what the programs print. A file named - is standard input.
// A program that starts with - goes after --. repl evaluates what is typed.
//
// check says what is likely wrong in programs, all files together, before they run.
// fmt prints programs in the one layout that all share, or with -w writes them so;
// -l lists the files that differ and -d shows how. ast prints the tree of a program.
// explain evaluates a program and prints which conditions were true and what changed.
// lsp serves an editor.
// test runs programs that say what they must do, and doc describes the language.
//
// NETWORK is --multicast GROUP:PORT, --broadcast ADDR:PORT, or --udp HOST:PORT to
// listen and --peer HOST:PORT to send to, or --registry IP:PORT to find the peers; run takes it too. watch shows what changes among the
// peers, pub sends variables, wait returns when an expression is true of what
// the peers know, and packet decodes captured messages. SECRETS, which go with NETWORK
// too, are --lz4, --aes-password TEXT or --aes-key-file FILE for MADARA's filters, and
// --aead-key-file FILE, made by keygen, to seal each datagram. run --serve ADDR lets others
// use the variables while the programs run: get and set, and eval --control ADDR.
// ADDR is the path of a unix socket, or HOST:PORT of this host.
//
// Results go to standard output, diagnostics to standard error: file, line,
// column and message of each fault, with the line of the program and a caret
// under it. The exit code is 0 if all went well, 1 if --until or what wait waits
// for was not reached, packet found a bad message, a test failed, check found an error or fmt -l or -d
// a file that differs, 2 for a wrong command line, 3 for a program that does not
// compile, 4 for one that failed, and 5 if a file could not be read, the output
// not be written, or a network not be used.
//
// Programs may read and write files below the working directory, read the
// environment and sleep. Those of a batch (see --batch in "karl eval --help")
// find no files and are bounded in time and memory.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

const description = `Evaluate and run programs of the language KaRL, alone or among peers.

Exit codes: 0 ok, 1 --until or wait not reached, a bad packet, a finding or a file that differs, 2 wrong usage, 3 compile error, 4 run-time error, 5 input, output or network failed.`

// cli is the command line. A new subcommand is a field here.
type cli struct {
	Eval     evalCmd     `cmd:"" help:"Evaluate programs given as arguments and print the value of the last."`
	Run      runCmd      `cmd:"" help:"Run program files, once or on a schedule."`
	REPL     replCmd     `cmd:"" name:"repl" help:"Try programs at a prompt."`
	Watch    watchCmd    `cmd:"" help:"Show what changes in a network."`
	Pub      pubCmd      `cmd:"" help:"Send variables to a network."`
	Wait     waitCmd     `cmd:"" help:"Wait until an expression is true of what a network knows."`
	Check    checkCmd    `cmd:"" help:"Say what is likely wrong in program files, without running them."`
	Test     testCmd     `cmd:"" help:"Run test files: programs with what they must do."`
	Fmt      fmtCmd      `cmd:"" help:"Lay out program files in the one way that all share."`
	AST      astCmd      `cmd:"" name:"ast" help:"Print the tree of a program."`
	LSP      lspCmd      `cmd:"" name:"lsp" help:"Serve an editor over standard input and output."`
	Explain  explainCmd  `cmd:"" help:"Evaluate a program and say why it came to what it did."`
	Registry registryCmd `cmd:"" help:"Let agents find each other."`
	Keygen   keygenCmd   `cmd:"" help:"Make a key for --aead-key-file or --aes-key-file."`
	Doc      docCmd      `cmd:"" help:"Describe the language by topics."`
	Packet   packetCmd   `cmd:"" help:"Decode captured messages and say what is wrong with bad ones."`
	Get      getCmd      `cmd:"" help:"Print variables of a knowledge base that serves."`
	Set      setCmd      `cmd:"" help:"Write variables of a knowledge base that serves."`
	Version  versionCmd  `cmd:"" help:"Print the version of the command."`
}

// process is what a subcommand has of its surroundings.
type process struct {
	in  io.Reader
	out *output
	err io.Writer

	stdin bool // standard input has been read
}

func main() {
	ignoreBrokenPipes()
	p := &process{in: os.Stdin, out: &output{w: os.Stdout}, err: os.Stderr}
	os.Exit(p.main(os.Args[1:]))
}

func (p *process) main(args []string) int {
	parser, err := kong.New(&cli{},
		kong.Name("karl"),
		kong.Description(description),
		kong.Writers(p.out, p.err),
		kong.Exit(func(int) { os.Exit(p.report(nil)) }), // after --help
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		panic(err) // the tags of cli are wrong
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return p.usage(err)
	}
	return p.report(ctx.Run(p))
}

// usage reports a command line that is wrong.
func (p *process) usage(err error) int {
	if p.out.broken() != nil { // the help could not be written
		return p.report(nil)
	}
	message := err.Error()
	usage, help := "karl <command> [flags]", "karl --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			usage, help = "karl "+node.Summary(), "karl "+node.Path()+" --help"
			message = strings.TrimPrefix(message, node.Path()+": ")
		}
	}
	fmt.Fprintf(p.err, "karl: %s\n", message)
	if strings.HasPrefix(message, "unknown flag") {
		fmt.Fprintln(p.err, "A program that starts with - goes after --.")
	}
	fmt.Fprintf(p.err, "Usage: %s\nRun %q for the flags.\n", usage, help)
	return exitUsage
}
