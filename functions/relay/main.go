// The relay function forwards requests to the API server of one private cluster. It runs in the cluster's own network.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/relay/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("relay", setup.New(lambdaruntime.Process()).Handle))
}
