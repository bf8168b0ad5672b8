package repotest

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root folder of the repository, so that they name files as pages do. Go does not see which files these
// tests read, so use -count=1.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
