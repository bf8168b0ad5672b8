// Command bootstrap is the function that the tests run: the event says what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do    string `json:"do"`
	Text  string `json:"text"`
	Size  int    `json:"size"`
	Sleep int    `json:"sleep"` // milliseconds
}

var served int

func handle(ctx context.Context, e event) (any, error) {
	served++
	time.Sleep(time.Duration(e.Sleep) * time.Millisecond)
	switch e.Do {
	case "echo":
		return e.Text, nil
	case "count":
		return map[string]int{"served": served, "pid": os.Getpid()}, nil
	case "meet": // as many as size, at a folder
		if err := os.WriteFile(filepath.Join(e.Text, fmt.Sprint(os.Getpid())), nil, 0o600); err != nil {
			return nil, err
		}
		for {
			if there, err := os.ReadDir(e.Text); err != nil || len(there) >= e.Size {
				return map[string]int{"pid": os.Getpid()}, err
			}
			time.Sleep(10 * time.Millisecond)
		}
	case "environment":
		deadline, _ := ctx.Deadline()
		lc, _ := lambdacontext.FromContext(ctx)
		return map[string]string{
			e.Text: os.Getenv(e.Text), "request": lc.AwsRequestID, "arn": lc.InvokedFunctionArn,
			"left": fmt.Sprint(time.Until(deadline).Round(time.Minute)), "name": lambdacontext.FunctionName,
		}, nil
	case "print":
		fmt.Println(e.Text)
		fmt.Fprintln(os.Stderr, "and to stderr")
		return nil, nil
	case "fail":
		return nil, messages.InvokeResponse_Error{Type: "Throttled", Message: e.Text}
	case "wrap":
		return nil, fmt.Errorf("wrapped: %w", errors.New("inner"))
	case "panic":
		panic(e.Text)
	case "exit":
		os.Exit(3)
	case "large":
		return strings.Repeat("x", e.Size), nil
	}
	return nil, errors.New("unknown: " + e.Do)
}

func main() {
	if os.Getenv("BROKEN_START") != "" {
		fmt.Println("cannot start")
		os.Exit(1)
	}
	lambda.Start(handle)
}
