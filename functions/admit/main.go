// The admit function reads uploaded specs and starts to converge their clusters.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/admit/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("admit", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
