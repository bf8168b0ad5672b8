package audit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/drover-run/drover/functions/sweep/work"
	"github.com/drover-run/drover/shared/logging"
	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/specs"
	"github.com/drover-run/drover/shared/status"
	"github.com/drover-run/drover/shared/store"
)

// Releases checks the releases whose events were lost. No cluster waits for a verdict, so the audit is soon enough.
// It costs two listings, and two small reads of each release whose verdict may be about another upload.
type Releases struct {
	Specs   work.SpecLister
	State   ReleaseStatuses
	Checker ReleaseChecker
	// Cache is kept between audits.
	Cache *ReleaseCache
	// EventGrace is the age from which an upload without an event counts as missed.
	EventGrace time.Duration
	Now        func() time.Time
}

// ReleaseStatuses holds the statuses of releases: a subset of store.State.
type ReleaseStatuses interface {
	List(ctx context.Context, prefix string) ([]store.Entry, error)
	ReleaseStatus(ctx context.Context, release string) (*status.Release, error)
}

// ReleaseChecker checks a release whose event was lost: releases.Checker.
type ReleaseChecker interface {
	Check(ctx context.Context, release string) error
}

// Run checks the releases that were uploaded, changed or deleted without an event.
func (p Releases) Run(ctx context.Context) error {
	uploads, err := p.Specs.List(ctx, names.ReleaseSpecs)
	if err != nil {
		return err
	}
	verdicts, err := p.State.List(ctx, names.ReleaseStatuses)
	if err != nil {
		return err
	}
	recorded := map[string]store.Entry{}
	for _, entry := range verdicts {
		recorded[entry.Key] = entry
	}
	var failed []error
	check := func(release string, spec, verdict store.Entry) {
		if p.Cache.has(release, spec, verdict) {
			return
		}
		current, err := p.checkIfStale(ctx, release)
		if err != nil {
			failed = append(failed, err)
		}
		// S3 keeps times in seconds: another upload in the same second would look the same.
		if current && p.Now().Sub(spec.Modified) > time.Minute {
			p.Cache.add(release, spec, verdict)
		}
	}
	for _, spec := range uploads {
		release, ok := names.ReleaseOfKey(spec.Key)
		verdict, found := recorded[names.ReleaseStatus(release)]
		delete(recorded, names.ReleaseStatus(release))
		// A verdict of the same second may be about this upload, or about the one before.
		if ok && p.Now().Sub(spec.Modified) >= p.EventGrace && !(found && verdict.Modified.After(spec.Modified)) {
			check(release, spec, verdict)
		}
	}
	for _, entry := range verdicts {
		if _, deleted := recorded[entry.Key]; deleted {
			check(strings.TrimSuffix(strings.TrimPrefix(entry.Key, names.ReleaseStatuses), ".json"), store.Entry{}, entry)
		}
	}
	return errors.Join(failed...)
}

// ReleaseCache holds, for each release, the listing entries of the file and its verdict from a time when the verdict was current. While the
// function lives, an unchanged listing needs no read.
type ReleaseCache struct {
	mu     sync.Mutex
	listed map[string]string
}

func listedAs(spec, verdict store.Entry) string {
	return spec.ETag + " " + spec.Modified.UTC().Format(time.RFC3339Nano) + " " + verdict.ETag
}

func (c *ReleaseCache) has(release string, spec, verdict store.Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed[release] == listedAs(spec, verdict)
}

func (c *ReleaseCache) add(release string, spec, verdict store.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed == nil {
		c.listed = map[string]string{}
	}
	c.listed[release] = listedAs(spec, verdict)
}

// checkIfStale checks a release, unless its verdict is about the newest upload. It reports whether that is so.
func (p Releases) checkIfStale(ctx context.Context, release string) (current bool, err error) {
	verdict, err := p.State.ReleaseStatus(ctx, release)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	version, err := specs.Version(ctx, p.Specs, names.ReleaseSpec(release))
	if err != nil {
		return false, err
	}
	if verdict.Status.Version == version {
		return true, nil
	}
	logging.From(ctx).Warn("release event lost", "release", release)
	return false, p.Checker.Check(ctx, release)
}
