// The change function changes one stack of a plan.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/change/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("change", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
