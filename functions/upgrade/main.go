// The upgrade function checks a cluster before and after an upgrade, computes its steps and verifies each.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/upgrade/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("upgrade", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
