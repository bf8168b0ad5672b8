// The clean function removes what Kubernetes made in the account for a cluster that is being deleted.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/functions/clean/handler"
	"github.com/drover-run/drover/shared/aws/eks"
	"github.com/drover-run/drover/shared/aws/leftovers"
	"github.com/drover-run/drover/shared/boundary"
	"github.com/drover-run/drover/shared/environment"
	"github.com/drover-run/drover/shared/store"
)

func main() {
	cfg := environment.AWS()
	s3 := environment.S3(cfg)
	h := &handler.Handler{
		Specs:     store.NewBucket(s3, environment.Must(environment.SpecsBucket)),
		State:     store.NewState(store.NewBucket(s3, environment.Must(environment.StateBucket)), time.Now),
		Clusters:  eks.New(awseks.NewFromConfig(cfg)),
		Leftovers: leftovers.New(cfg, environment.Must(environment.LeftoversRole)),
	}
	lambda.Start(boundary.Wrap("clean", h.Handle))
}
