// The rollout function plans rollouts, evaluates their runs, and assigns releases to clusters.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/rollout/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("rollout", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
