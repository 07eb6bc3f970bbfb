// A gRPC client that knows no schema: it sends raw bytes to any method and says in one line of JSON what came of it.
//
//	go run . -target 127.0.0.1:8080 unary  /lf.a2a.v1.A2AService/GetTask -hex 0a0131
//	go run . -target 127.0.0.1:8080 stream /lf.a2a.v1.A2AService/SubscribeToTask -hex 0a0131 -max 3
//	go run . -target 127.0.0.1:8080 unread STREAM-METHOD -beside UNARY-METHOD -count 50
//	go run . -target 127.0.0.1:8080 load   METHOD -count 10000 -parallel 8
//	go run . -target 127.0.0.1:8080 cancel METHOD -count 500 -beside UNARY-METHOD
//
// All commands use one connection. tests/interop/grpc_clients/js/client.mjs takes the same arguments and answers alike.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// raw is a codec that leaves bytes alone.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

// report is the one line that is printed.
type report struct {
	Command  string              `json:"command"`
	Code     string              `json:"code"`
	Number   int                 `json:"number"`
	Message  string              `json:"message,omitempty"`
	Details  string              `json:"details,omitempty"` // grpc-status-details-bin, hex
	Replies  []string            `json:"replies,omitempty"` // hex, unless -quiet
	Count    int                 `json:"count"`             // replies, or calls that ended well
	Bytes    int                 `json:"bytes"`
	Echoed   bool                `json:"echoed"` // the first reply equals the request
	Failed   map[string]int      `json:"failed,omitempty"`
	WorstMs  float64             `json:"worst_ms,omitempty"`
	Seconds  float64             `json:"seconds"`
	Beside   string              `json:"beside,omitempty"`
	Metadata map[string][]string `json:"metadata,omitempty"`
}

func main() {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	target := flags.String("target", "127.0.0.1:8080", "host:port")
	ca := flags.String("ca", "", "PEM of the CA to trust; turns TLS on")
	cert := flags.String("cert", "", "PEM of a client certificate")
	key := flags.String("key", "", "PEM of its key")
	authority := flags.String("authority", "", ":authority to send")
	hexData := flags.String("hex", "", "request message, hex")
	text := flags.String("text", "", "request message, as text")
	size := flags.Int("size", 0, "request message of so many octets")
	meta := flags.String("meta", "", "metadata, k=v,k=v")
	deadline := flags.Duration("deadline", 30*time.Second, "of each call")
	zip := flags.Bool("gzip", false, "compress requests")
	max := flags.Int("max", 0, "cancel a stream after so many messages")
	count := flags.Int("count", 100, "calls to make")
	parallel := flags.Int("parallel", 8, "calls in flight")
	beside := flags.String("beside", "", "unary method to call beside the others")
	settle := flags.Duration("settle", time.Second, "wait before the next step")
	quiet := flags.Bool("quiet", false, "print no replies")

	// options may stand before and after the command and the method
	var words []string
	for args := os.Args[1:]; len(args) > 0; args = flags.Args() {
		if !strings.HasPrefix(args[0], "-") {
			words = append(words, args[0])
			args = args[1:]
		}
		check(flags.Parse(args))
	}
	if len(words) != 2 {
		check(errors.New("usage: client [options] unary|stream|unread|load|cancel METHOD"))
	}
	command, method := words[0], words[1]

	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport(*ca, *cert, *key)),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)),
		grpc.WithDisableRetry(),
	}
	if *authority != "" {
		options = append(options, grpc.WithAuthority(*authority))
	}
	if *zip {
		options = append(options, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	conn, err := grpc.NewClient(*target, options...)
	check(err)
	defer conn.Close()

	request := []byte(*text)
	if *hexData != "" {
		request, err = hex.DecodeString(*hexData)
		check(err)
	} else if *size > 0 {
		request = bytes.Repeat([]byte("dragoman"), *size/8+1)[:*size]
	}
	base := context.Background()
	for _, pair := range strings.Split(*meta, ",") {
		if name, value, found := strings.Cut(pair, "="); found {
			base = metadata.AppendToOutgoingContext(base, name, value)
		}
	}

	out := report{Command: command}
	started := time.Now()
	unary := func(ctx context.Context, method string, request []byte) ([]byte, error) {
		ctx, stop := context.WithTimeout(ctx, *deadline)
		defer stop()
		var reply []byte
		trailer := metadata.MD{}
		err := conn.Invoke(ctx, method, &request, &reply, grpc.Trailer(&trailer))
		if command == "unary" {
			out.Metadata = trailer
		}
		return reply, err
	}
	open := func(ctx context.Context) (grpc.ClientStream, error) {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
		if err == nil {
			if err = stream.SendMsg(&request); err == nil {
				err = stream.CloseSend()
			}
		}
		return stream, err
	}
	read := func(stream grpc.ClientStream, limit int) error {
		for limit == 0 || out.Count < limit {
			var reply []byte
			if err := stream.RecvMsg(&reply); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			out.add(reply, request, *quiet)
		}
		return nil
	}

	switch command {
	case "unary":
		reply, err := unary(base, method, request)
		if err == nil {
			out.add(reply, request, *quiet)
		}
		out.end(err)
	case "stream":
		ctx, stop := context.WithTimeout(base, *deadline)
		stream, err := open(ctx)
		if err == nil {
			err = read(stream, *max)
		}
		stop()
		out.end(err)
		if stream != nil {
			out.Metadata = stream.Trailer()
		}
	case "unread": // one stream whose messages nobody takes, and other calls beside it
		*quiet = true
		stream, err := open(base)
		check(err)
		check(read(stream, 1))
		time.Sleep(*settle)
		well := 0
		for range *count {
			began := time.Now()
			if _, err := unary(base, *beside, request); err != nil {
				out.fail(err)
			} else {
				well++
			}
			out.WorstMs = maximum(out.WorstMs, float64(time.Since(began).Microseconds())/1000)
		}
		out.end(read(stream, 0))
		out.Beside = fmt.Sprintf("%d of %d", well, *count)
	case "load":
		*quiet = true
		var lock sync.Mutex
		var group sync.WaitGroup
		left := make(chan struct{}, *count)
		for range *count {
			left <- struct{}{}
		}
		close(left)
		for range *parallel {
			group.Add(1)
			go func() {
				defer group.Done()
				for range left {
					began := time.Now()
					reply, err := unary(base, method, request)
					took := float64(time.Since(began).Microseconds()) / 1000
					lock.Lock()
					out.WorstMs = maximum(out.WorstMs, took)
					if err != nil {
						out.fail(err)
					} else {
						out.add(reply, request, true)
					}
					lock.Unlock()
				}
			}()
		}
		group.Wait()
		out.end(nil)
	case "cancel": // many calls cancelled at once; one that was not, and one that comes after
		ctx, stop := context.WithCancel(base)
		var group sync.WaitGroup
		for range *count {
			group.Add(1)
			go func() { defer group.Done(); _, _ = unary(ctx, method, request) }()
		}
		innocent := make(chan error, 1)
		go func() { _, err := unary(base, method, request); innocent <- err }()
		time.Sleep(*settle)
		stop()
		group.Wait()
		_, after := unary(base, *beside, request)
		out.Beside = fmt.Sprintf("after: %s", status.Code(after))
		out.end(<-innocent)
	default:
		check(errors.New("unknown command " + command))
	}
	out.Seconds = time.Since(started).Seconds()
	check(json.NewEncoder(os.Stdout).Encode(out))
}

func (r *report) add(reply, request []byte, quiet bool) {
	if r.Count == 0 {
		r.Echoed = bytes.Equal(reply, request)
	}
	r.Count++
	r.Bytes += len(reply)
	if !quiet {
		r.Replies = append(r.Replies, hex.EncodeToString(reply))
	}
}

func (r *report) fail(err error) {
	if r.Failed == nil {
		r.Failed = map[string]int{}
	}
	r.Failed[status.Code(err).String()+": "+status.Convert(err).Message()]++
}

func (r *report) end(err error) {
	state := status.Convert(err)
	r.Code, r.Number, r.Message = state.Code().String(), int(state.Code()), state.Message()
	if state.Code() != codes.OK && len(state.Proto().GetDetails()) > 0 {
		for _, detail := range state.Proto().GetDetails() {
			r.Details += detail.GetTypeUrl() + ":" + hex.EncodeToString(detail.GetValue()) + " "
		}
	}
}

func transport(ca, cert, key string) credentials.TransportCredentials {
	if ca == "" {
		return insecure.NewCredentials()
	}
	pem, err := os.ReadFile(ca)
	check(err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config)
}

func maximum(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
