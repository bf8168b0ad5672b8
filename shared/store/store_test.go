package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/engine/endpoint"
	"github.com/drover-run/drover/local/engine/faults"
	"github.com/drover-run/drover/local/testkit/harness"
	"github.com/drover-run/drover/shared/fault"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// An object whose key holds what XML cannot takes nobody else's out of a listing: S3 gives such a key as a character that readers of XML
// refuse, unless it is asked to encode keys. https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
func TestAnyKeyCanBeListed(t *testing.T) {
	keys := []string{"clusters/\x1b[31mdemo.yaml", "clusters/a b+c%2f&<ü>.yaml", "clusters/demo.yaml"}
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encode, encoding := func(key string) string {
			return strings.NewReplacer("&", "&amp;", "<", "&lt;", "\x1b", "&#x1b;").Replace(key)
		}, ""
		if r.URL.Query().Get("encoding-type") == "url" {
			encode = func(key string) string { return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/") }
			encoding = "<EncodingType>url</EncodingType>"
		}
		fmt.Fprintf(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s`, encoding)
		for _, key := range keys {
			fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents>", encode(key))
		}
		fmt.Fprint(w, "</ListBucketResult>")
	}))
	defer s3.Close()
	client := awss3.New(awss3.Options{
		Region: "eu-central-1", BaseEndpoint: &s3.URL, UsePathStyle: true, Credentials: aws.AnonymousCredentials{},
	})
	entries, err := store.NewBucket(client, "specs").List(t.Context(), "clusters/")
	require.NoError(t, err)
	listed := []string{}
	for _, entry := range entries {
		listed = append(listed, entry.Key)
	}
	require.Equal(t, keys, listed)
}

func TestObjects(t *testing.T) {
	a := harness.Start(t)
	b, ctx := a.State().Bucket, t.Context()

	t.Run("what is not there is not found", func(t *testing.T) {
		_, err := b.Get(ctx, "absent", 10)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = b.GetVersion(ctx, "absent", "01M7WZGJRZZDQ4QXEVTR07RWPZ", 10)
		require.ErrorIs(t, err, store.ErrNotFound)
	})
	t.Run("what is deleted is not found, its older versions are", func(t *testing.T) {
		_, err := b.Put(ctx, "gone", []byte("one"))
		require.NoError(t, err)
		one, err := b.Get(ctx, "gone", 10)
		require.NoError(t, err)
		require.Equal(t, "one", string(one.Body))
		require.NoError(t, b.DeleteIf(ctx, "gone", one.ETag))
		_, err = b.Get(ctx, "gone", 10)
		require.ErrorIs(t, err, store.ErrNotFound)
		again, err := b.GetVersion(ctx, "gone", one.Version, 10)
		require.NoError(t, err)
		require.Equal(t, one, again)
	})
	t.Run("what is too large is not read", func(t *testing.T) {
		_, err := b.Put(ctx, "large", []byte(strings.Repeat("x", 11)))
		require.NoError(t, err)
		_, err = b.Get(ctx, "large", 10)
		var large *store.TooLarge
		require.ErrorAs(t, err, &large)
		require.EqualValues(t, 11, large.Size)
		require.NotEmpty(t, large.Version)
		_, err = b.Get(ctx, "large", 11)
		require.NoError(t, err)
	})
	t.Run("what is addressed by its content is written once", func(t *testing.T) {
		require.NoError(t, b.PutOnce(ctx, "once", []byte("first")))
		require.NoError(t, b.PutOnce(ctx, "once", []byte("second")))
		object, err := b.Get(ctx, "once", 10)
		require.NoError(t, err)
		require.Equal(t, "first", string(object.Body))
	})
	t.Run("a race that S3 does not decide is no proof that it is there", func(t *testing.T) {
		for name, test := range map[string]struct {
			races int
			fails bool
		}{"once": {1, false}, "always": {100, true}} {
			races := test.races
			a.OnCall(func(call endpoint.Call) error {
				if races--; races >= 0 && call.Action == "PutObject" {
					return faults.Strike{Kind: faults.Conflict, Code: "409"}.Answer("s3")
				}
				return nil
			})
			err := b.PutOnce(ctx, "raced-"+name, []byte("x"))
			a.OnCall(nil)
			if test.fails {
				require.Equal(t, "Transient", fault.NameOf(err))
				continue
			}
			require.NoError(t, err)
			_, err = b.Get(ctx, "raced-"+name, 10)
			require.NoError(t, err, name)
		}
	})
	t.Run("replacing needs what was read", func(t *testing.T) {
		first, err := b.Replace(ctx, "cas", []byte("1"), "")
		require.NoError(t, err)
		_, err = b.Replace(ctx, "cas", []byte("2"), "")
		require.ErrorIs(t, err, store.ErrConflict, "it is there by now")
		second, err := b.Replace(ctx, "cas", []byte("2"), first)
		require.NoError(t, err)
		_, err = b.Replace(ctx, "cas", []byte("3"), first)
		require.ErrorIs(t, err, store.ErrConflict, "it changed")
		require.NoError(t, b.DeleteIf(ctx, "cas", first), "a changed one stays")
		object, err := b.Get(ctx, "cas", 10)
		require.NoError(t, err)
		require.Equal(t, "2", string(object.Body))
		require.NoError(t, b.DeleteIf(ctx, "cas", second))
		require.NoError(t, b.DeleteIf(ctx, "cas", second), "twice is once")
		require.NoError(t, b.DeleteIf(ctx, "never", second))
		_, err = b.Replace(ctx, "cas", []byte("3"), second)
		require.ErrorIs(t, err, store.ErrConflict, "it is gone")
		_, err = b.Replace(ctx, "cas", []byte("3"), "")
		require.NoError(t, err, "absent is absent, whatever was there")
	})
	t.Run("listings have all pages", func(t *testing.T) {
		for i := range 7 {
			_, err := b.Put(ctx, fmt.Sprintf("list/%d", i), nil)
			require.NoError(t, err)
		}
		small := store.NewBucket(awss3.New(lambdaruntime.S3(a.Config()).Options(), pagesOf(2)), b.Name())
		entries, err := small.List(ctx, "list/")
		require.NoError(t, err)
		require.Len(t, entries, 7)
		for i, entry := range entries {
			require.Equal(t, fmt.Sprintf("list/%d", i), entry.Key)
			require.WithinDuration(t, time.Now(), entry.Modified, time.Minute)
		}
		none, err := small.List(ctx, "nothing/")
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

// pagesOf has listings come in pages of that many keys.
func pagesOf(keys int32) func(*awss3.Options) {
	add := middleware.InitializeMiddlewareFunc("pages", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		if list, ok := in.Parameters.(*awss3.ListObjectsV2Input); ok {
			list.MaxKeys = &keys
		}
		return next.HandleInitialize(ctx, in)
	})
	return func(o *awss3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error { return stack.Initialize.Add(add, middleware.Before) })
	}
}

func TestStatus(t *testing.T) {
	a := harness.Start(t)
	s, ctx := a.State(), t.Context()

	t.Run("of a cluster nobody has heard of", func(t *testing.T) {
		c, err := s.Status(ctx, "nobody")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, status.Pending, c.Status.Phase)
	})
	t.Run("a change that changes nothing writes nothing", func(t *testing.T) {
		same := func(s *status.Status) { s.Message = "x" }
		require.NoError(t, s.UpdateStatus(ctx, "same", same))
		before, err := s.Status(ctx, "same")
		require.NoError(t, err)
		mark := a.Calls.Mark()
		require.NoError(t, s.UpdateStatus(ctx, "same", same))
		require.NoError(t, s.UpdateStatus(ctx, "same", func(s *status.Status) { s.Stacks = []status.Stack{} }), "empty is nil")
		for _, call := range a.Calls.Since(mark) {
			require.False(t, call.Mutating, call.Action)
		}
		after, err := s.Status(ctx, "same")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	t.Run("of writers at the same time none loses", func(t *testing.T) {
		const writers = 32 // drains of a whole pool
		var all sync.WaitGroup
		var failed atomic.Int32
		for i := range writers {
			all.Go(func() {
				err := s.UpdateStatus(ctx, "shared", func(s *status.Status) {
					s.SetStack(status.Stack{Name: fmt.Sprint(i), Status: "CREATE_COMPLETE"}, time.Now())
				})
				if err != nil {
					failed.Add(1)
				}
			})
		}
		all.Wait()
		require.Zero(t, failed.Load())
		c, err := s.Status(ctx, "shared")
		require.NoError(t, err)
		require.Len(t, c.Status.Stacks, writers)
	})
	t.Run("a writer that always loses says so, and that it may be tried again", func(t *testing.T) {
		other := 0
		err := s.UpdateStatus(ctx, "contended", func(mine *status.Status) {
			mine.Message = "mine"
			other++
			require.NoError(t, s.UpdateStatus(ctx, "contended", func(s *status.Status) { s.Message = fmt.Sprint(other) }))
		})
		require.Equal(t, "Transient", fault.NameOf(err))
	})
	t.Run("one that is no status is an error that names it", func(t *testing.T) {
		_, err := s.Put(ctx, "status/clusters/odd.json", []byte("{"))
		require.NoError(t, err)
		require.ErrorContains(t, s.UpdateStatus(ctx, "odd", func(*status.Status) {}), "status/clusters/odd.json")
	})
}

func TestLease(t *testing.T) {
	a := harness.Start(t)
	s, ctx := a.State(), t.Context()
	const one, two = "arn:aws:states:x:1:execution:drover-converge:one-with-a-name-as-long-as-they-are", "arn:aws:states:x:1:execution:drover-converge:two-with-a-name-as-long-as-they-are"

	nobody, err := s.Lease(ctx, "demo")
	require.NoError(t, err)
	require.Zero(t, nobody)
	held, err := s.Acquire(ctx, "demo", nobody, one)
	require.NoError(t, err)
	require.EqualValues(t, 1, held.Fence)
	_, err = s.Acquire(ctx, "demo", nobody, two)
	require.ErrorIs(t, err, store.ErrConflict, "of two that saw it free, one has it")
	mark := a.Calls.Mark()
	again, err := s.Acquire(ctx, "demo", held, one)
	require.NoError(t, err)
	require.Equal(t, held, again)
	require.Empty(t, a.Calls.Since(mark), "who holds it writes nothing")

	require.NoError(t, s.CheckLease(ctx, "demo", one, 1))
	for _, wrong := range []error{s.CheckLease(ctx, "demo", two, 1), s.CheckLease(ctx, "demo", one, 2), s.CheckLease(ctx, "other", one, 1)} {
		require.Equal(t, "LeaseLost", fault.NameOf(wrong))
	}
	clusters, err := s.Held(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"demo"}, clusters)
	for name, c := range map[string]struct {
		cluster string
		runs    bool
		asked   error
		holder  string
	}{
		"it runs":                {"demo", true, nil, one},
		"it is over":             {"demo", false, nil, ""},
		"it cannot be asked for": {"demo", true, errors.New("throttled"), ""},
		"nobody is asked for":    {"other", true, errors.New("nobody has it"), ""},
	} {
		holder, err := s.Holder(ctx, c.cluster, func(_ context.Context, execution string) (bool, error) {
			require.Equal(t, one, execution)
			return c.runs, c.asked
		})
		require.Equal(t, c.holder, holder, name)
		require.Equal(t, c.asked != nil && c.cluster == "demo", err != nil, name)
	}
	require.NoError(t, s.Release(ctx, "demo", two), "what one does not hold one cannot give up")
	require.NoError(t, s.CheckLease(ctx, "demo", one, 1))

	require.NoError(t, s.Release(ctx, "demo", one))
	require.NoError(t, s.Release(ctx, "demo", one), "twice is once")
	require.Error(t, s.CheckLease(ctx, "demo", one, 1))
	clusters, err = s.Held(ctx)
	require.NoError(t, err)
	require.Empty(t, clusters)
	free, err := s.Lease(ctx, "demo")
	require.NoError(t, err)
	next, err := s.Acquire(ctx, "demo", free, two)
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Fence, "numbers never repeat")
	_, err = s.Acquire(ctx, "demo", free, one)
	require.ErrorIs(t, err, store.ErrConflict)

	// Somebody takes it over between the reading and the writing of who gives it up.
	taken := false
	a.OnCall(func(call endpoint.Call) error {
		if call.Action == "PutObject" && !taken {
			taken = true
			_, err := s.Acquire(ctx, "demo", next, one)
			require.NoError(t, err)
		}
		return nil
	})
	require.NoError(t, s.Release(ctx, "demo", two))
	require.NoError(t, s.CheckLease(ctx, "demo", one, 3))
}

func TestManyTakeALeaseAtOnce(t *testing.T) {
	a := harness.Start(t)
	s := a.State()
	var all sync.WaitGroup
	var got atomic.Int32
	for i := range 8 {
		all.Go(func() {
			seen, err := s.Lease(context.Background(), "demo")
			if err != nil {
				return
			}
			if _, err = s.Acquire(context.Background(), "demo", seen, fmt.Sprint("execution-", i)); err == nil && seen.Execution == "" {
				got.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, got.Load())
}

func TestWaiters(t *testing.T) {
	a := harness.Start(t)
	s, ctx := a.State(), t.Context()
	first, err := s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "first"})
	require.NoError(t, err)
	_, err = s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "second"})
	require.NoError(t, err)
	require.NoError(t, s.DeleteWaiter(ctx, first), "a later one stays")
	second, err := s.Waiter(ctx, "drover-demo-network")
	require.NoError(t, err)
	require.Equal(t, "second", second.TaskToken)
	require.NoError(t, s.DeleteWaiter(ctx, second))
	require.NoError(t, s.DeleteWaiter(ctx, second))
	_, err = s.Waiter(ctx, "drover-demo-network")
	require.ErrorIs(t, err, store.ErrNotFound)
	mark := a.Calls.Mark()
	require.NoError(t, s.DeleteWaiter(ctx, store.Waiter{StackName: "never-written"}))
	require.Empty(t, a.Calls.Since(mark))
}

// A step of a holder that lost its lease must not take the stack from the step of the next one, which would then wait for ever.
func TestAWaiterIsNotReplacedByThatOfAnEarlierHolder(t *testing.T) {
	a := harness.Start(t)
	s, ctx := a.State(), t.Context()
	_, err := s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "late", Fence: 7})
	require.NoError(t, err)
	_, err = s.PutWaiter(ctx, store.Waiter{StackName: "drover-demo-network", TaskToken: "early", Fence: 6})
	var lost *fault.LeaseLost
	require.ErrorAs(t, err, &lost)
	kept, err := s.Waiter(ctx, "drover-demo-network")
	require.NoError(t, err)
	require.Equal(t, "late", kept.TaskToken)
}
