package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of messages from an editor.
const (
	maxMessage = 16 << 20 // bytes of a message
	maxHeader  = 4 << 10  // bytes of the lines before it
)

// rpcMessage is a message of JSON-RPC: a request, or a notification where ID is nil.
type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// rpcError is what a request is answered with that cannot be done.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// Codes of errors.
const (
	rpcParse          = -32700
	rpcInvalidRequest = -32600
	rpcUnknownMethod  = -32601
	rpcInvalidParams  = -32602
	rpcNotInitialized = -32002
)

// rpcConn reads and writes messages with their header lines.
type rpcConn struct {
	r *bufio.Reader
	w io.Writer
}

// read returns the next message, io.EOF where the stream ends between two.
func (c *rpcConn) read() ([]byte, error) {
	length, header := -1, 0
	for {
		line, err := c.line(maxHeader - header)
		if err != nil {
			if errors.Is(err, io.EOF) && header == 0 && line == "" {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("header of a message: %w", noEOF(err))
		}
		header += len(line)
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 0 || n > maxMessage {
			return nil, fmt.Errorf("Content-Length %.40q: want 0 to %d", value, maxMessage)
		}
		length = n
	}
	if length < 0 {
		return nil, errors.New("message without Content-Length")
	}
	// What did not arrive is not allocated.
	body, err := io.ReadAll(io.LimitReader(c.r, int64(length)))
	if err == nil && len(body) < length {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}

// line returns a line of at most so many bytes, with its end.
func (c *rpcConn) line(limit int) (string, error) {
	var b []byte
	for {
		x, err := c.r.ReadByte()
		if err != nil {
			return string(b), err
		}
		if b = append(b, x); x == '\n' {
			return string(b), nil
		}
		if len(b) >= limit {
			return string(b), fmt.Errorf("longer than %d bytes", maxHeader)
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *rpcConn) write(message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.w, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// answer writes the answer to a request.
func (c *rpcConn) answer(id json.RawMessage, result any, err error) error {
	type head struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
	}
	if err != nil {
		var e *rpcError
		if !errors.As(err, &e) {
			e = &rpcError{rpcInvalidParams, err.Error()}
		}
		return c.write(struct {
			head
			Error *rpcError `json:"error"`
		}{head{"2.0", id}, e})
	}
	return c.write(struct {
		head
		Result any `json:"result"`
	}{head{"2.0", id}, result})
}

func (c *rpcConn) notify(method string, params any) error {
	return c.write(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}
