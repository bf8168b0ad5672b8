// The prepare function grants drover's other functions access to a cluster.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/prepare/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("prepare", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
