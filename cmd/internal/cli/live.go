package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drover-run/drover/cmd/internal/cli/view"
)

const (
	// clusterInterval and fleetInterval are between two pictures. The table of all lists every stack of the account.
	clusterInterval = 3 * time.Second
	fleetInterval   = 10 * time.Second
)

// showLive shows a cluster, or all without a name, as drover recorded it and as AWS and the cluster have it now. On a terminal it goes on
// until ctx ends, and a picture that cannot be made names the error. Elsewhere it prints once.
func showLive(ctx context.Context, out io.Writer, source *liveSource, name string, all, verbose bool) error {
	interval := clusterInterval
	if name == "" {
		interval = fleetInterval
	}
	var frame view.Frame
	var last []byte
	for first := true; ; first = false {
		picture, err := drawLive(ctx, out, source, name, all, verbose)
		if ctx.Err() != nil {
			return nil
		}
		_, rows, terminal := view.TerminalSize(out)
		if err != nil && (first || !terminal) {
			return err
		}
		if !terminal {
			_, err := out.Write(picture)
			return err
		}
		footer := fmt.Sprintf("live, every %s; Ctrl-C ends", interval)
		if err != nil {
			picture, footer = last, "not refreshed: "+err.Error()
		}
		last = picture
		end := draw(out, verbose, func(d *display) { d.say("\n%s", footer) })
		if _, err := io.WriteString(out, frame.Next(string(picture)+string(end), rows)); err != nil {
			return err
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// drawLive reads everything and makes one picture.
func drawLive(ctx context.Context, out io.Writer, source *liveSource, name string, all, verbose bool) ([]byte, error) {
	if name == "" {
		clusters, err := allStatuses(ctx, source.c)
		if err != nil {
			return nil, err
		}
		live := source.fleet(ctx)
		return draw(out, verbose, func(d *display) { d.fleet(clusters, live, all) }), nil
	}
	cluster, err := readStatus(ctx, source.c, name)
	if err != nil {
		return nil, err
	}
	live := source.cluster(ctx, cluster)
	return draw(out, verbose, func(d *display) { d.cluster(cluster, live) }), nil
}

// draw into memory what is to be shown on out.
func draw(out io.Writer, verbose bool, show func(*display)) []byte {
	var picture bytes.Buffer
	d := newDisplay(out, verbose)
	d.out = &picture
	show(d)
	return picture.Bytes()
}
