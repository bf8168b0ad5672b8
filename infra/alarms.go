package main

import "github.com/aws/constructs-go/constructs/v10"

func newAlarms(scope constructs.Construct, f functions, m machines, n notices) {}
