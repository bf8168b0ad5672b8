package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The assumed memory and timeout are those of the template.
func TestRelayIsThatOfTheTemplate(t *testing.T) {
	template, err := os.ReadFile(filepath.Join("..", "..", "templates", "v1", "control-plane.yaml.tmpl"))
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`Timeout: 60\n\s+MemorySize: 256`), string(template))
	require.Equal(t, time.Minute, relayTimeout)
	require.InDelta(t, 256./1024, relayMemory, 0)
}

func TestWatchCost(t *testing.T) {
	quiet, invocations := watchCost(0)
	require.InDelta(t, 72, invocations, 0, "a watch ends after 50 seconds")
	require.InDelta(t, 0.0120, quiet, 0.0001)
	busy, _ := watchCost(1e9)
	require.InDelta(t, quiet+(1e9-72*6e6)/1e9*0.008, busy, 1e-9)
}

func TestChosenTools(t *testing.T) {
	chosen := func(pattern string) (found []string) {
		for _, who := range chosenTools([]tool{drover, throughRelay, kubectl}, regexp.MustCompile(pattern)) {
			found = append(found, who.name)
		}
		return found
	}
	require.Equal(t, []string{drover.name, throughRelay.name, kubectl.name}, chosen(""))
	require.Equal(t, []string{drover.name, throughRelay.name}, chosen("relay"))
	require.Equal(t, []string{drover.name}, chosen("^none$"), "the others are compared with drover")
}
