package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A removal asks, and changes nothing without a yes. Without a terminal it refuses, unless YES=1.
func TestConfirm(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "input"))
	require.NoError(t, err)
	defer file.Close()
	for name, c := range map[string]struct {
		in    io.Reader
		yes   bool
		fails string
		asks  bool
	}{
		"asks, and continues after yes":       {in: strings.NewReader("yes\n"), asks: true},
		"continues after yes without newline": {in: strings.NewReader("yes"), asks: true},
		"stops after another answer":          {in: strings.NewReader("y\n"), asks: true, fails: "nothing was changed"},
		"stops after an empty answer":         {in: strings.NewReader("\n"), asks: true, fails: "nothing was changed"},
		"stops at the end of the input":       {in: strings.NewReader(""), asks: true, fails: "set YES=1"},
		"refuses without a terminal":          {in: file, fails: "no terminal for the confirmation: set YES=1"},
		"asks nothing with YES=1":             {in: file, yes: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			target := &target{in: c.in, out: &out, yes: c.yes}
			err := target.confirm("This removes drover from account %s.", "111122223333")
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			require.Contains(t, out.String(), "This removes drover from account 111122223333.\n", "it says what happens")
			require.Equal(t, c.asks, strings.Contains(out.String(), "Continue? Type yes: "))
		})
	}
}
