package handler

// Releases that nobody was told of. No cluster waits for a verdict, so the audit is soon enough: two listings, and two small reads of a
// release whose verdict may be about another upload, once.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/store"
)

// releases has those looked at that came, changed or went without an event.
func (h *Handler) releases(ctx context.Context) error {
	specs, err := h.Specs.List(ctx, names.ReleaseSpecs)
	if err != nil {
		return err
	}
	verdicts, err := h.State.List(ctx, names.ReleaseStatuses)
	if err != nil {
		return err
	}
	told := map[string]store.Entry{}
	for _, entry := range verdicts {
		told[entry.Key] = entry
	}
	var failed []error
	unheard := func(release string, spec, verdict store.Entry) {
		if h.heard.is(release, spec, verdict) {
			return
		}
		about, err := h.unheard(ctx, release)
		if err != nil {
			failed = append(failed, err)
		}
		// S3 tells the time in seconds: an upload of the last one may be followed by another that looks the same.
		if about && h.Now().Sub(spec.Modified) > time.Minute {
			h.heard.add(release, spec, verdict)
		}
	}
	for _, spec := range specs {
		release, ok := names.ReleaseOfKey(spec.Key)
		verdict, known := told[names.ReleaseStatus(release)]
		delete(told, names.ReleaseStatus(release))
		// A verdict of the same second may be about this upload, or about the one before.
		if ok && h.Now().Sub(spec.Modified) >= h.Patience && !(known && verdict.Modified.After(spec.Modified)) {
			unheard(release, spec, verdict)
		}
	}
	for _, entry := range verdicts {
		if _, gone := told[entry.Key]; gone {
			unheard(strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.ReleaseStatuses), ".json"), store.Entry{}, entry)
		}
	}
	return errors.Join(failed...)
}

// heard are the releases whose verdict was seen to be about what is there, as both were listed then, so that a running function need not
// read them again.
type heard struct {
	mu     sync.Mutex
	listed map[string]string
}

func listedAs(spec, verdict store.Entry) string {
	return spec.ETag + " " + spec.Modified.UTC().Format(time.RFC3339Nano) + " " + verdict.ETag
}

func (k *heard) is(release string, spec, verdict store.Entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listed[release] == listedAs(spec, verdict)
}

func (k *heard) add(release string, spec, verdict store.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.listed == nil {
		k.listed = map[string]string{}
	}
	k.listed[release] = listedAs(spec, verdict)
}

// unheard has a release looked at, unless its verdict is about what is there now.
func (h *Handler) unheard(ctx context.Context, release string) (about bool, err error) {
	verdict, err := h.State.Verdict(ctx, release)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	version, err := specs.Version(ctx, h.Specs, names.ReleaseSpec(release))
	if err != nil {
		return false, err
	}
	if verdict.Status.Version == version {
		return true, nil
	}
	logging.From(ctx).Warn("the event of this release was lost", "release", release)
	return false, h.Publish.Check(ctx, release)
}
