package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/status"
)

// reportIgnored prints, below the table of clusters, which uploads drover does not read.
func reportIgnored(ctx context.Context, w io.Writer, c *Cell) error {
	ignored, err := c.State.IgnoredUploads(ctx)
	if err != nil {
		return err
	}
	printIgnored(w, ignored)
	return nil
}

func printIgnored(w io.Writer, ignored status.IgnoredUploads) {
	if len(ignored.Uploads) == 0 {
		return
	}
	fmt.Fprintln(w, "\nUploads that drover does not read:")
	for _, upload := range ignored.Uploads {
		if upload.DidYouMean == "" {
			fmt.Fprintf(w, "  %q\n", upload.Key)
			continue
		}
		fmt.Fprintf(w, "  %q: did you mean %s?\n", upload.Key, upload.DidYouMean)
	}
	if ignored.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", ignored.More)
	}
}
