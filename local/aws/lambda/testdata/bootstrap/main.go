// Command bootstrap is the function that the tests run: the event says what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Pause int    `json:"pause"` // milliseconds between chunks
	File  string `json:"file"`
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
	case "stream": // size chunks of the text, with pauses; then touches the file, or fails if there is none
		return &chunks{e: e}, nil
	case "large":
		return strings.Repeat("x", e.Size), nil
	}
	return nil, errors.New("unknown: " + e.Do)
}

// chunks is a streamed response.
type chunks struct {
	e event
	n int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.n == c.e.Size {
		if c.e.File == "" {
			return 0, messages.InvokeResponse_Error{Type: "Throttled", Message: "enough"}
		}
		if err := os.WriteFile(c.e.File, nil, 0o600); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	if c.n++; c.n > 1 {
		time.Sleep(time.Duration(c.e.Pause) * time.Millisecond)
	}
	return copy(p, c.e.Text), nil
}

func main() {
	if os.Getenv("BROKEN_START") != "" {
		fmt.Println("cannot start")
		os.Exit(1)
	}
	lambda.Start(handle)
}
