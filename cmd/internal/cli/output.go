package cli

// Output for machines: the flag -o of commands that print text by default.

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of every command that has -o.
const (
	formatJSON = "json"
	formatYAML = "yaml"
)

// outputFlag is the value of -o. The empty format prints text.
type outputFlag struct {
	format  string
	formats []string
}

// addOutputFlag registers -o with json, yaml and the formats of the command's own, such as wide.
func addOutputFlag(cmd *cobra.Command, own ...string) *outputFlag {
	o := &outputFlag{formats: append([]string{formatJSON, formatYAML}, own...)}
	cmd.Flags().VarP(o, "output", "o", "output format: "+o.choices())
	completeFlag(cmd, "output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *outputFlag) choices() string {
	last := len(o.formats) - 1
	return strings.Join(o.formats[:last], ", ") + " or " + o.formats[last]
}

// String, Set and Type implement pflag.Value.
func (o *outputFlag) String() string { return o.format }

func (o *outputFlag) Set(format string) error {
	if !slices.Contains(o.formats, format) {
		return fmt.Errorf("must be %s", o.choices())
	}
	o.format = format
	return nil
}

func (o *outputFlag) Type() string { return "format" }

// forMachines reports whether the output is a document, which print writes.
func (o *outputFlag) forMachines() bool { return o.format == formatJSON || o.format == formatYAML }

// print writes a value as a JSON or YAML document. Both have the names of the value's json tags.
func (o *outputFlag) print(w io.Writer, v any) error {
	if o.format == formatYAML {
		body, err := yaml.Marshal(v)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	}
	return printJSON(w, v)
}

func printJSON(w io.Writer, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", body)
	}
	return err
}
