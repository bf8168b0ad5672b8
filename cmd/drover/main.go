// Command drover is the command line. It checks and renders specs offline, uploads them, and shows what would change and
// what runs. It does not link the local account: `drover local` starts the program drover-local.
package main

import "github.com/drover-run/drover/cmd/internal/cli"

func main() { cli.Main(cli.Root()) }
