package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/cmd/internal/cli/view"
)

const (
	// clusterInterval and fleetInterval are the pauses between two refreshes. The table of all clusters lists every stack of the account.
	clusterInterval = 3 * time.Second
	fleetInterval   = 10 * time.Second
)

// showLive shows the recorded and the observed state of a cluster, or of all clusters if name is empty. On a terminal it refreshes until
// ctx ends; if a refresh fails, it shows the previous state with the error. Elsewhere it prints once.
func showLive(ctx context.Context, out io.Writer, c *Cell, name string, all, verbose bool) error {
	interval := clusterInterval
	if name == "" {
		interval = fleetInterval
	}
	var frame view.Frame
	source := live.New(c.cfg)
	var last []byte
	for first := true; ; first = false {
		text, err := drawLive(ctx, out, c, source, name, all, verbose)
		if ctx.Err() != nil {
			return nil
		}
		_, rows, terminal := view.TerminalSize(out)
		if err != nil && (first || !terminal) {
			return err
		}
		if !terminal {
			_, err := out.Write(text)
			return err
		}
		footer := fmt.Sprintf("live, every %s; Ctrl-C ends", interval)
		if err != nil {
			text, footer = last, "not refreshed: "+err.Error()
		}
		last = text
		end := draw(out, verbose, func(d *display) { d.say("\n%s", footer) })
		if _, err := io.WriteString(out, frame.Next(string(text)+string(end), rows)); err != nil {
			return err
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// drawLive reads all sources and formats them.
func drawLive(ctx context.Context, out io.Writer, c *Cell, source *live.Source, name string, all, verbose bool) ([]byte, error) {
	if name == "" {
		clusters, err := ReadStatuses(ctx, c)
		if err != nil {
			return nil, err
		}
		observed := source.Fleet(ctx)
		return draw(out, verbose, func(d *display) { d.statuses(clusters, observed, all) }), nil
	}
	cluster, err := readStatus(ctx, c, name)
	if err != nil {
		return nil, err
	}
	observed := source.Cluster(ctx, cluster)
	return draw(out, verbose, func(d *display) { d.cluster(cluster, observed) }), nil
}

// draw formats a view for out, and returns it without writing to out.
func draw(out io.Writer, verbose bool, show func(*display)) []byte {
	var text bytes.Buffer
	d := newDisplay(out, verbose)
	d.out = &text
	show(d)
	return text.Bytes()
}
