// Command buildall builds the control plane's programs, when they are not up to date, below the folder it is run in:
// the root of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/drover-run/drover/local/kubernetes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := kubernetes.Build(ctx, ".", func(line string) { fmt.Println(line) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
