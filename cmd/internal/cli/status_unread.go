package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/drover-run/drover/shared/status"
)

// reportUnread prints, below the table of clusters, which uploads drover does not read.
func reportUnread(ctx context.Context, w io.Writer, c *Cell) error {
	unread, err := c.State.Unread(ctx)
	if err != nil {
		return err
	}
	printUnread(w, unread)
	return nil
}

func printUnread(w io.Writer, unread status.UnreadUploads) {
	if len(unread.Uploads) == 0 {
		return
	}
	fmt.Fprintln(w, "\nUploads that drover does not read:")
	for _, upload := range unread.Uploads {
		if upload.DidYouMean == "" {
			fmt.Fprintf(w, "  %q\n", upload.Key)
			continue
		}
		fmt.Fprintf(w, "  %q: did you mean %s?\n", upload.Key, upload.DidYouMean)
	}
	if unread.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", unread.More)
	}
}
