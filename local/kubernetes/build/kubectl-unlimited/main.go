// Command kubectl-unlimited is kubectl without the limit of its client: kubectl asks at most five times a second, and has no
// flag for that. Benchmarks compare with it, so that they do not only measure that limit.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.QPS = -1
		return config
	})
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments: os.Args, ConfigFlags: flags,
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	})
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
}
