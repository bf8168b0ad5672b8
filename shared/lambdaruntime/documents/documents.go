// Package documents opens the buckets of a function: the uploaded specs, and drover's state. Only the setup packages of functions use it.
package documents

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/store"
)

// Documents opens the buckets that the environment names. They share one client, and so its connections to S3.
type Documents struct {
	client *awss3.Client
	env    lambdaruntime.Env
}

// New returns the documents of a function.
func New(cfg aws.Config, env lambdaruntime.Env) Documents { return Documents{s3.NewClient(cfg), env} }

// Specs returns the bucket of specs, which users write.
func (d Documents) Specs() *s3.Bucket {
	return s3.NewBucket(d.client, d.env.Must(lambdaruntime.SpecsBucket))
}

// State returns drover's state. Its changes are reported to the notifier.
func (d Documents) State(notifier store.Notifier) *store.State {
	return store.NewState(s3.NewBucket(d.client, d.env.Must(lambdaruntime.StateBucket)), notifier, time.Now)
}
