// The clean function deletes what Kubernetes created in the account for a cluster that is being deleted.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/clean/handler"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/aws/s3"
	"github.com/drover-run/drover/shared/lambdaruntime"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := lambdaruntime.AWS()
	bucketClient := s3.NewClient(cfg)
	h := &handler.Handler{
		Specs:     s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.SpecsBucket)),
		State:     store.NewState(s3.NewBucket(bucketClient, lambdaruntime.Must(lambdaruntime.StateBucket)), store.Silent, time.Now),
		Clusters:  eks.New(awseks.NewFromConfig(cfg)),
		Leftovers: leftovers.New(cfg, lambdaruntime.Must(lambdaruntime.LeftoversRole)),
	}
	lambda.Start(lambdaruntime.Wrap("clean", h.Handle))
}
