package iam

import "testing"

// Evaluation never panics, and a policy without Allow allows nothing.
func FuzzEvaluate(f *testing.F) {
	f.Add(document(
		`{"Effect":"Allow","Action":"s3:*","Resource":"${aws:username}*","Condition":{"ForAllValues:StringLike":{"a:b":["${*}","x${"]}}}`),
		"s3:Get", "arn:x", "v")
	f.Add(document(
		`{"Effect":"Deny","NotAction":["a*","?"],"NotResource":"***","Condition":{"NotIpAddress":{"a:b":"::/0"},"DateLessThan":{"a:b":1}}}`),
		"a", "", "::1")
	f.Fuzz(func(t *testing.T, text, action, resource, value string) {
		p, err := ParsePolicy(text, false)
		if err != nil {
			return
		}
		allows := false
		for _, s := range p.Statements {
			allows = allows || s.Allow
		}
		got := p.evaluate(newRequest(action, resource, nil, in(map[string]string{"a:b": value, "aws:username": value})))
		if got == Allowed && !allows {
			t.Fatalf("%s allows %s", text, action)
		}
	})
}
