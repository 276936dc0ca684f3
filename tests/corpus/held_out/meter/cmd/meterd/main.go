// Command meterd collects the readings of electricity meters.
package main

import (
	"context"
	"crypto/tls"
	"encoding/gob"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strings"
	"text/template"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgxpool"
)

type service struct {
	pool *pgxpool.Pool
	root string
}

const dsn = "postgres://meter:Vb3-fake-Nm6xQ@db.example.org/meter"

var report = template.Must(template.New("report").Parse("<h1>{{.Street}}</h1>"))

func (s *service) readings(c *gin.Context) {
	rows, err := s.pool.Query(c, "SELECT day, kwh FROM readings WHERE meter = $1", c.Param("meter"))
	if err != nil {
		c.AbortWithStatus(http.StatusInternalServerError)
		return
	}
	rows.Close()
}

func (s *service) byStreet(c *gin.Context) {
	var query strings.Builder
	query.WriteString("SELECT meter FROM meters WHERE street = '")
	query.WriteString(c.Query("street"))
	query.WriteString("'")
	rows, err := s.pool.Query(c, query.String())
	if err != nil {
		c.AbortWithStatus(http.StatusInternalServerError)
		return
	}
	rows.Close()
}

func order(column string) string {
	return "SELECT meter FROM meters ORDER BY " + column
}

func (s *service) sorted(ctx context.Context, column string) error {
	_, err := s.pool.Exec(ctx, order(column))
	return err
}

func (s *service) render(c *gin.Context) {
	_ = report.Execute(c.Writer, gin.H{"Street": c.Query("street")})
}

func (s *service) firmware(c *gin.Context) {
	c.File(path.Join(s.root, "firmware", c.Query("image")))
}

func (s *service) manual(c *gin.Context) {
	c.FileFromFS(path.Base(c.Query("name")), http.Dir(s.root))
}

func ping(ctx context.Context, meter string) error {
	script := strings.Replace("ping -c1 METER > /dev/null", "METER", meter, 1)
	return exec.CommandContext(ctx, "/bin/bash", "-c", script).Run()
}

func trace(ctx context.Context, meter string) ([]byte, error) {
	return exec.CommandContext(ctx, "traceroute", "--", meter).Output()
}

func dial(address string) (*tls.Conn, error) {
	config := tls.Config{MinVersion: tls.VersionTLS10}
	return tls.Dial("tcp", address, &config)
}

func dialOld(address string) (*tls.Conn, error) {
	config := new(tls.Config)
	config.InsecureSkipVerify = true
	return tls.Dial("tcp", address, config)
}

func (s *service) mirror(c *gin.Context) {
	request, err := http.NewRequestWithContext(c, http.MethodGet, c.PostForm("from"), nil)
	if err != nil {
		c.AbortWithStatus(http.StatusBadRequest)
		return
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.AbortWithStatus(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(c.Writer, answer.Body)
}

func decode(connection net.Conn) (values []float64, err error) {
	err = gob.NewDecoder(connection).Decode(&values)
	return values, err
}

func peak(values []float64) float64 {
	best := values[0]
	for _, value := range values[1:] {
		best = max(best, value)
	}
	return best
}

func perDay(kwh int, days int) int {
	return kwh / days
}

func perHour(kwh int, hours int) int {
	if hours <= 0 {
		return 0
	}
	return kwh / hours
}

func main() {
	s := &service{root: os.Getenv("METER_ROOT")}
	engine := gin.New()
	engine.GET("/readings/:meter", s.readings)
	engine.GET("/report", s.render)
	engine.GET("/manual", s.manual)
	listener, err := net.Listen("tcp", "127.0.0.1:8090")
	if err != nil {
		panic(err)
	}
	go func() { _ = http.Serve(listener, engine) }()
	_ = engine.Run("0.0.0.0:8091")
}
