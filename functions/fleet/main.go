// The fleet function carries out the assignments of rollouts in this cell, and reports facts about its clusters. See its handler package.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/drover-run/drover/functions/fleet/setup"
	"github.com/drover-run/drover/shared/lambdaruntime"
)

func main() {
	lambda.Start(lambdaruntime.Wrap("fleet", setup.New(lambdaruntime.AWS(), lambdaruntime.Process()).Handle))
}
