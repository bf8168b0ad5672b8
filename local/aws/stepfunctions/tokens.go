package stepfunctions

// Answers to waiting tasks. https://docs.aws.amazon.com/step-functions/latest/apireference/API_SendTaskSuccess.html

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-run/drover/local/aws/stepfunctions/asl"
	"github.com/drover-run/drover/local/engine/wire"
)

// PendingAnswers returns the number of accepted answers that their executions have not processed yet.
func (s *Service) PendingAnswers() int { return s.tokens.PendingAnswers() }

// answer authorizes an answer on the machine whose task waits, and delivers it.
func (s *Service) answer(c *wire.Call, token string, deliver func() error) (any, error) {
	s.mu.Lock()
	machine, found := s.waiting[token]
	s.mu.Unlock()
	if found {
		if err := c.Authorize(machine); err != nil {
			return nil, err
		}
	}
	switch err := deliver(); {
	case errors.Is(err, asl.ErrTaskDoesNotExist):
		return nil, wire.Errorf("TaskDoesNotExist", "Task does not exist")
	case errors.Is(err, asl.ErrTaskTimedOut):
		return nil, wire.Errorf("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
	case err != nil:
		return nil, wire.Errorf("InvalidToken", "Invalid Token: 'Invalid token'")
	}
	return struct{}{}, nil
}

func (s *Service) sendTaskSuccess(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TaskToken, Output string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if !json.Valid([]byte(in.Output)) {
		return nil, wire.Errorf("InvalidOutput", "Invalid Output: it is no JSON")
	}
	if len(in.Output) > maxInput {
		return nil, wire.Errorf("InvalidOutput", "Invalid Output: it is larger than %d bytes", maxInput)
	}
	return s.answer(c, in.TaskToken, func() error { return s.tokens.Succeed(in.TaskToken, json.RawMessage(in.Output)) })
}

func (s *Service) sendTaskFailure(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TaskToken, Error, Cause string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.Error) > 256 || len(in.Cause) > 32768 {
		return nil, wire.Errorf("ValidationException", "an error has at most 256 characters and a cause at most 32768")
	}
	return s.answer(c, in.TaskToken, func() error { return s.tokens.Fail(in.TaskToken, in.Error, in.Cause) })
}

func (s *Service) sendTaskHeartbeat(_ context.Context, c *wire.Call) (any, error) {
	var in struct{ TaskToken string }
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	return s.answer(c, in.TaskToken, func() error { return s.tokens.Heartbeat(in.TaskToken) })
}
