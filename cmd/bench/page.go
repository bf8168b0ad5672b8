package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
)

// The limits of the page with 10,000 clusters, in milliseconds.
const (
	maxFirstView    = 1000
	maxPanningFrame = 50
)

var pageFigures = regexp.MustCompile(`\{"firstViewMilliseconds".*\}`)

// measurePage runs the test of the page in Chromium, which measures the first view and the longest frame while panning.
func measurePage(ctx context.Context, s *settings, r *report) error {
	var views, frames []float64
	for range s.count {
		test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestPageInBrowser$", ".")
		test.Dir = filepath.Join(s.root, "cmd", "internal", "ui")
		out, err := test.CombinedOutput()
		if err != nil {
			return fmt.Errorf("running the page in Chromium: %w\n%s", err, out)
		}
		var figures struct{ FirstViewMilliseconds, LongestFrameMilliseconds float64 }
		found := pageFigures.Find(out)
		if found == nil {
			return fmt.Errorf("the page was not measured:\n%s", out)
		}
		if err := json.Unmarshal(found, &figures); err != nil {
			return err
		}
		views, frames = append(views, figures.FirstViewMilliseconds), append(frames, figures.LongestFrameMilliseconds)
	}
	r.add("the page with 10,000 clusters: first view", median(views), "ms", atMost(maxFirstView),
		"headless Chromium, from the request to the totals")
	r.add("panning over all of them: longest frame", median(frames), "ms", atMost(maxPanningFrame), "121 frames; without a GPU")
	return nil
}
