package main

import (
	"context"
	"errors"
	"io"

	"github.com/drover-run/drover/events"
)

func previewUpgrade(ctx context.Context, out io.Writer, c *cell, in events.Upgrade) error {
	return errors.New("soon")
}
