// Command buildall builds the control plane's programs, when they are not up to date, below the folder it is run in:
// the root of the repository. With -clients it builds kubectl, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/drover-run/drover/local/kubernetes"
)

func main() {
	clients := flag.Bool("clients", false, "build kubectl, too, with which benchmarks compare")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := kubernetes.Build(ctx, ".", *clients, func(line string) { fmt.Println(line) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
