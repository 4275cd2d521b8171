package main

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

type httpRequest struct {
	Method  string              `json:"method"`
	Target  string              `json:"target"`
	Host    string              `json:"host"`
	Headers map[string][]string `json:"headers"`
	HasBody bool                `json:"hasBody"`
}

// A connection whose client sent some bytes and then nothing more.
type recorded struct {
	input  *bytes.Reader
	mutex  sync.Mutex
	closed chan struct{}
	once   sync.Once
}

func (c *recorded) Read(p []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.input.Read(p)
}
func (c *recorded) Write(p []byte) (int, error)        { return len(p), nil }
func (c *recorded) Close() error                       { c.once.Do(func() { close(c.closed) }); return nil }
func (c *recorded) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (c *recorded) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (c *recorded) SetDeadline(_ time.Time) error      { return nil }
func (c *recorded) SetReadDeadline(_ time.Time) error  { return nil }
func (c *recorded) SetWriteDeadline(_ time.Time) error { return nil }

type oneConnection struct {
	next chan net.Conn
	done chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	select {
	case conn := <-l.next:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneConnection) Close() error   { return nil }
func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

// httpRequestsOf are the requests that net/http's server hands to its handler, in the order of one connection.
func httpRequestsOf(data []byte) []httpRequest {
	requests := []httpRequest{}
	conn := &recorded{input: bytes.NewReader(data), closed: make(chan struct{})}
	listener := &oneConnection{next: make(chan net.Conn, 1), done: make(chan struct{})}
	listener.next <- conn
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(io.LimitReader(r.Body, mostBytes))
			requests = append(requests, httpRequest{
				r.Method, r.RequestURI, r.Host, r.Header, len(body) > 0 || len(r.TransferEncoding) > 0 || r.ContentLength > 0,
			})
		}),
	}
	go func() { _ = server.Serve(listener) }()
	<-conn.closed
	close(listener.done)
	_ = server.Close()
	return requests
}
