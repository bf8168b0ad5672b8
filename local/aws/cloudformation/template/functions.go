package template

import (
	"encoding/base64"
	"math/big"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// The intrinsic functions whose arguments are evaluated first.

var functions = map[string]func(*Scope, any) (any, error){
	"Fn::Join":        join,
	"Fn::Select":      choose,
	"Fn::Split":       split,
	"Fn::Base64":      encode,
	"Fn::FindInMap":   findInMap,
	"Fn::GetAZs":      zones,
	"Fn::ImportValue": importValue,
	"Fn::Cidr":        cidr,
}

func join(_ *Scope, argument any) (any, error) {
	bad := errorf("Template error: every Fn::Join object requires two parameters, (1) a string delimiter " +
		"and (2) a list of strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined.")
	pair, ok := argument.([]any)
	if !ok || len(pair) != 2 {
		return nil, bad
	}
	delimiter, ok := pair[0].(string)
	if !ok {
		return nil, bad
	}
	list, ok := pair[1].([]any)
	if !ok {
		return nil, bad
	}
	parts := make([]string, 0, len(list))
	for _, item := range list {
		if !isScalar(item) {
			return nil, bad
		}
		parts = append(parts, Text(item))
	}
	return strings.Join(parts, delimiter), nil
}

func choose(_ *Scope, argument any) (any, error) {
	bad := errorf("Template error: every Fn::Select object requires two non-null parameters, " +
		"the first is an integer index and the second is a list of items (or a function that returns a list).")
	pair, ok := argument.([]any)
	if !ok || len(pair) != 2 || !isScalar(pair[0]) {
		return nil, bad
	}
	index, err := strconv.Atoi(Text(pair[0]))
	if err != nil {
		return nil, bad
	}
	list, ok := pair[1].([]any)
	if !ok {
		return nil, bad
	}
	if index < 0 || index >= len(list) {
		return nil, errorf("Template error: Fn::Select cannot select nonexistent value at index %d", index)
	}
	return list[index], nil
}

func split(_ *Scope, argument any) (any, error) {
	bad := errorf("Template error: every Fn::Split object requires two parameters, " +
		"(1) a string delimiter and (2) a string to be split or a function that returns a string to be split.")
	pair, ok := argument.([]any)
	if !ok || len(pair) != 2 {
		return nil, bad
	}
	delimiter, ok := pair[0].(string)
	if !ok || delimiter == "" {
		return nil, bad
	}
	source, ok := pair[1].(string)
	if !ok {
		return nil, bad
	}
	var parts []any
	for _, part := range strings.Split(source, delimiter) {
		parts = append(parts, part)
	}
	return parts, nil
}

func encode(_ *Scope, argument any) (any, error) {
	if !isScalar(argument) {
		return nil, errorf("Template error: every Fn::Base64 object must have a String-typed value.")
	}
	return base64.StdEncoding.EncodeToString([]byte(Text(argument))), nil
}

func findInMap(s *Scope, argument any) (any, error) {
	list, ok := argument.([]any)
	if ok && len(list) == 4 {
		return nil, &UnsupportedError{What: "Fn::FindInMap with a default value"}
	}
	if !ok || len(list) != 3 || !isScalar(list[0]) || !isScalar(list[1]) || !isScalar(list[2]) {
		return nil, errorf("Template error: every Fn::FindInMap object requires three parameters, the map name, map key and the attribute " +
			"for return value")
	}
	name, top, second := Text(list[0]), Text(list[1]), Text(list[2])
	mapping, ok := s.Template.Mappings[name].(map[string]any)
	if !ok {
		return nil, errorf("Template error: Mapping named '%s' is not present in the 'Mappings' section of template.", name)
	}
	if inner, ok := mapping[top].(map[string]any); ok {
		if value, found := inner[second]; found {
			return value, nil
		}
	}
	return nil, errorf("Template error: Unable to get mapping for %s::%s::%s", name, top, second)
}

func zones(s *Scope, argument any) (any, error) {
	region, ok := argument.(string)
	if !ok {
		return nil, errorf("Template error: every Fn::GetAZs object must have a String-typed value.")
	}
	if region == "" {
		region = Text(s.Pseudo["AWS::Region"])
	}
	if s.Zones == nil {
		return nil, &UnsupportedError{What: "Fn::GetAZs"}
	}
	names, err := s.Zones(region)
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	return list, nil
}

func importValue(s *Scope, argument any) (any, error) {
	if !isScalar(argument) || s.Import == nil {
		return nil, errorf("Template error: every Fn::ImportValue object must have a String-typed value.")
	}
	return s.Import(Text(argument))
}

// cidr splits a block into count blocks with the given number of host bits.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-cidr.html
func cidr(_ *Scope, argument any) (any, error) {
	list, ok := argument.([]any)
	if !ok || len(list) < 2 || len(list) > 3 {
		return nil, errorf("Template error: every Fn::Cidr object requires two or three parameters, (1) an ip block, " +
			"(2) a count and (3) the number of host bits.")
	}
	bits := 0
	if len(list) == 3 {
		var err error
		if bits, err = strconv.Atoi(Text(list[2])); err != nil {
			return nil, errorf("Template error: Fn::Cidr cidrBits must be an integer")
		}
	}
	block, err := netip.ParsePrefix(Text(list[0]))
	if err != nil {
		return nil, errorf("Template error: Fn::Cidr ipBlock %s is not a valid CIDR block", Text(list[0]))
	}
	count, err := strconv.Atoi(Text(list[1]))
	if err != nil || count < 1 || count > 256 {
		return nil, errorf("Template error: Fn::Cidr count must be between 1 and 256")
	}
	if len(list) == 2 {
		if !block.Addr().Is4() {
			return nil, errorf("Template error: Fn::Cidr needs cidrBits for an IPv6 block")
		}
		bits = 8
	}
	length := block.Addr().BitLen()
	if bits < 1 || length-bits < block.Bits() || length-bits-block.Bits() < 9 && count > 1<<(length-bits-block.Bits()) {
		return nil, errorf("Template error: Fn::Cidr cannot fit %d blocks of %d bits into %s", count, bits, block)
	}
	base := new(big.Int).SetBytes(block.Masked().Addr().AsSlice())
	blocks := make([]any, 0, count)
	for range count {
		address, _ := netip.AddrFromSlice(base.FillBytes(make([]byte, length/8)))
		blocks = append(blocks, netip.PrefixFrom(address, length-bits).String())
		base.Add(base, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return blocks, nil
}

// subVariable matches ${Name}, ${Name.Attribute}, ${AWS::Name} and the literal ${!Name}.
var subVariable = regexp.MustCompile(`\$\{[^}]*\}`)

var subName = regexp.MustCompile(`^[A-Za-z0-9_.:]+$`)

// subArguments splits the argument of Fn::Sub.
func subArguments(argument any) (source string, variables map[string]any, err error) {
	if text, ok := argument.(string); ok {
		return text, nil, nil
	}
	list, ok := argument.([]any)
	if ok && len(list) == 2 {
		source, isText := list[0].(string)
		variables, isMap := list[1].(map[string]any)
		if isText && isMap {
			return source, variables, nil
		}
	}
	return "", nil, errorf("Template error: One or more Fn::Sub intrinsic functions don't specify expected arguments. " +
		"Specify a string as first argument, and an optional second argument to specify a mapping of values to replace in the string")
}

func (s *Scope) sub(argument any) (any, error) {
	source, variables, err := subArguments(argument)
	if err != nil {
		return nil, err
	}
	var causes []string
	var failed error
	result := subVariable.ReplaceAllStringFunc(source, func(match string) string {
		name := strings.TrimSpace(match[2 : len(match)-1])
		if strings.HasPrefix(name, "!") {
			return "${" + name[1:] + "}"
		}
		if failed != nil {
			return match
		}
		value, err := s.variable(name, variables)
		if err != nil {
			failed = err
			return match
		}
		if unknown := Causes(value); len(unknown) > 0 {
			causes = append(causes, unknown...)
			return match
		}
		if !isScalar(value) {
			failed = errorf("Template error: Fn::Sub expression variable %s does not resolve to a string", name)
			return match
		}
		return Text(value)
	})
	if failed != nil {
		return nil, failed
	}
	if len(causes) > 0 {
		return Unknown{Causes: causes}, nil
	}
	return result, nil
}

func (s *Scope) variable(name string, variables map[string]any) (any, error) {
	if value, found := variables[name]; found {
		return s.value(value)
	}
	if !subName.MatchString(name) {
		return nil, errorf("Template error: variable names in Fn::Sub syntax must contain only alphanumeric characters, underscores, " +
			"periods, and colons")
	}
	if strings.Contains(name, ".") {
		return s.getAtt(name)
	}
	return s.ref(name)
}
