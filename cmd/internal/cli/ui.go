package cli

// The ui command: the page on the loopback, or a published copy of it.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/cobra"

	"github.com/drover-run/drover/cmd/internal/cli/live"
	"github.com/drover-run/drover/cmd/internal/overview"
	"github.com/drover-run/drover/cmd/internal/ui"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/pool"
	"github.com/drover-run/drover/shared/store"
)

func uiCommand() *cobra.Command {
	var port int
	var publish string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the fleet and its rollouts on a page in the browser",
		Long: `Serves a page on 127.0.0.1 until Ctrl-C, and prints its address. The page shows every cluster as a square, with filters, groups and
colors, and one cluster in depth: conditions, the plan of the last converge, drains with the budgets that block them, the steps of
an upgrade, and pools and nodes by version. It shows each rollout with its stages, members, budgets and gates. Its buttons start, approve,
pause, resume, retry, skip and abort: each one uploads a decision, as ` + "`drover rollout`" + ` does. It reads and uploads with your
credentials.

The address has a random token. Requests without it get no data, and neither do those for other host names or from other sites.

With --publish it writes a copy of the page and of its documents to a bucket of yours, and ends. The copy has no buttons. Every
principal that may read that prefix can read every status.`,
		Example: `  drover ui
  drover ui --port 8080
  drover ui --publish s3://my-bucket/fleet`,
		Annotations:       ExitCodes("the page was served until Ctrl-C; with --publish, every file was written", "an error"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := ui.Files(); err != nil {
				return err
			}
			var bucket, prefix string
			if publish != "" {
				var err error
				if bucket, prefix, err = parsePublish(publish); err != nil {
					return err
				}
			}
			c, err := openCell(cmd.Context())
			if err != nil {
				return err
			}
			if publish != "" {
				count, err := publishPage(cmd.Context(), c, bucket, prefix, time.Now())
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "published %d clusters to s3://%s/%sindex.html\n", count, bucket, prefix)
				}
				return err
			}
			return servePage(cmd, c, port)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "the port of 127.0.0.1; 0 is any free port")
	cmd.Flags().StringVar(&publish, "publish", "", "write a read-only copy to s3://BUCKET/PREFIX, and end")
	return cmd
}

// servePage serves the page until the context ends, and prints its address.
func servePage(cmd *cobra.Command, c *Cell, port int) error {
	address, serve, err := OpenPage(c, port)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\nCtrl-C ends. The address has a token: its holder can read every status, and make decisions.\n",
		address)
	return serve(cmd.Context())
}

// OpenPage listens on a port of 127.0.0.1 and returns the address of the page. serve serves it until its context ends.
func OpenPage(c *Cell, port int) (address string, serve func(context.Context) error, err error) {
	listener, err := ui.Listen(port)
	if err != nil {
		return "", nil, err
	}
	page := c.page()
	page.Decides = true
	handler, err := ui.NewServer(listener, page, newPageSource(c))
	if err != nil {
		return "", nil, errors.Join(err, listener.Close())
	}
	return handler.URL(), func(ctx context.Context) error {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

// page says what the page of the cell shows.
func (c *Cell) page() ui.Page { return ui.Page{Account: c.render.Account, Region: c.render.Region} }

// pageSource reads what the page shows.
type pageSource struct {
	c      *Cell
	reader *overview.Reader
	// mu guards live.
	mu   sync.Mutex
	live map[string]*lockedSource
}

// lockedSource is one cluster, which is read once at a time.
type lockedSource struct {
	sync.Mutex
	*live.Source
}

func newPageSource(c *Cell) *pageSource {
	return &pageSource{c: c, reader: &overview.Reader{Objects: c.State}, live: map[string]*lockedSource{}}
}

func (p *pageSource) Fleet(ctx context.Context) ([]byte, error) {
	rows, err := p.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	return overview.NewDocument(rows).JSON()
}

func (p *pageSource) Cluster(ctx context.Context, name string) ([]byte, error) {
	object, err := p.c.State.Get(ctx, names.Status(name), store.MaxDocument)
	return object.Body, err
}

// pageNodes has the pools of one cluster as they are now. Unread says which source was not read.
type pageNodes struct {
	Pools  []pagePool `json:"pools"`
	Unread string     `json:"unread,omitempty"`
}

// pagePool counts the nodes of a pool. Ready is absent if the cluster was not read.
type pagePool struct {
	Name      string        `json:"name"`
	Desired   int           `json:"desired"`
	InService int           `json:"inService"`
	Ready     *int          `json:"ready,omitempty"`
	Versions  []pageVersion `json:"versions"`
}

// pageVersion counts the instances of a pool with one launch template version and one kubelet.
type pageVersion struct {
	Template string `json:"template,omitempty"`
	Kubelet  string `json:"kubelet,omitempty"`
	Nodes    int    `json:"nodes"`
}

func (p *pageSource) Nodes(ctx context.Context, name string) ([]byte, error) {
	cluster, err := p.c.State.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.live[name] == nil {
		p.live[name] = &lockedSource{Source: live.New(p.c.cfg)}
	}
	source := p.live[name]
	p.mu.Unlock()
	source.Lock()
	defer source.Unlock()
	return json.Marshal(nodesByVersion(source.Pools(ctx, cluster)))
}

// nodesByVersion counts the instances of each pool.
func nodesByVersion(observed *live.Cluster) pageNodes {
	nodes := pageNodes{Pools: []pagePool{}}
	for _, source := range []struct {
		name string
		err  error
	}{{"Auto Scaling", observed.GroupsErr}, {"the cluster", observed.NodesErr}} {
		if source.err != nil && !errors.Is(source.err, pool.ErrNoCluster) {
			nodes.Unread = strings.TrimPrefix(nodes.Unread+"; "+source.name+" was not read: "+source.err.Error(), "; ")
		}
	}
	kubelets := map[string]string{}
	for _, n := range observed.Nodes {
		kubelets[n.Instance] = n.KubeletVersion
	}
	for name, group := range observed.Groups {
		progress := live.ProgressOf(group, observed.Nodes, observed.NodesErr == nil, false)
		counted := pagePool{Name: name, Desired: progress.Desired, InService: progress.InService, Versions: []pageVersion{}}
		if progress.Ready >= 0 {
			counted.Ready = &progress.Ready
		}
		counts := map[pageVersion]int{}
		for _, i := range group.Instances {
			counts[pageVersion{Template: i.TemplateVersion, Kubelet: kubelets[i.ID]}]++
		}
		for version, count := range counts {
			version.Nodes = count
			counted.Versions = append(counted.Versions, version)
		}
		slices.SortFunc(counted.Versions, func(a, b pageVersion) int {
			return strings.Compare(a.Template+" "+a.Kubelet, b.Template+" "+b.Kubelet)
		})
		nodes.Pools = append(nodes.Pools, counted)
	}
	slices.SortFunc(nodes.Pools, func(a, b pagePool) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// parsePublish parses s3://BUCKET/PREFIX. The prefix ends with a slash, or is empty.
func parsePublish(url string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(url, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return "", "", fmt.Errorf("--publish %q is invalid: use s3://BUCKET/PREFIX", url)
	}
	if strings.HasPrefix(bucket, names.Prefix) {
		return "", "", fmt.Errorf("--publish %q is refused: buckets %s* are drover's own; use a bucket of yours", url, names.Prefix)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return bucket, prefix, nil
}

// publishPage writes the page and the statuses to a bucket: the data first, and last the page that names them.
func publishPage(ctx context.Context, c *Cell, bucket, prefix string, now time.Time) (clusters int, err error) {
	files, err := ui.Files()
	if err != nil {
		return 0, err
	}
	client := s3.NewClient(c.cfg)
	put := func(f ui.File) error {
		key, age := prefix+f.Name, "no-cache"
		_, err := client.PutObject(ctx, &awss3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: bytes.NewReader(f.Body), ContentType: &f.ContentType, CacheControl: &age,
		})
		if err != nil {
			return fmt.Errorf("writing s3://%s/%s: %w", bucket, key, err)
		}
		return nil
	}
	write := func(name string, body []byte) error {
		return put(ui.File{Name: name, ContentType: "application/json", Body: body})
	}
	source := newPageSource(c)
	rows, err := source.reader.Read(ctx)
	if err != nil {
		return 0, err
	}
	err = overview.Each(ctx, len(rows), func(ctx context.Context, i int) error { return publishCluster(ctx, source, rows[i], write) })
	if err != nil {
		return 0, err
	}
	if err := publishRollouts(ctx, source, write); err != nil {
		return 0, err
	}
	document, err := overview.NewDocument(rows).JSON()
	if err != nil {
		return 0, err
	}
	if err := write(ui.FleetPath, document); err != nil {
		return 0, err
	}
	page := c.page()
	page.PublishedAt = now.UTC().Truncate(time.Second)
	about, err := json.Marshal(page)
	if err != nil {
		return 0, err
	}
	if err := write(ui.PagePath, about); err != nil {
		return 0, err
	}
	for _, f := range files {
		if err := put(f); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// publishCluster writes the status of a cluster, and its pools and nodes unless it is deleted.
func publishCluster(ctx context.Context, source *pageSource, row overview.Row, write func(name string, body []byte) error) error {
	body, err := source.Cluster(ctx, row.Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil // deleted since it was listed
	} else if err != nil {
		return err
	}
	if err := write(names.Status(row.Name), body); err != nil || row.Health == overview.Deleted || row.Health == overview.Unknown {
		return err
	}
	nodes, err := source.Nodes(ctx, row.Name)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return write(ui.NodesPrefix+row.Name+".json", nodes)
}
