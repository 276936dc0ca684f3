import Fastify, { FastifyReply, FastifyRequest } from "fastify";
import cookie from "@fastify/cookie";
import childProcess from "child_process";
import { readFile } from "fs/promises";
import { resolve } from "path";
import vm from "vm";
import axios from "axios";
import { jwtVerify, decodeJwt } from "jose";
import { Parcels } from "./parcels";

const app = Fastify({ logger: true, bodyLimit: 64_000 });
const parcels = new Parcels();
const labels = resolve("/var/lib/courier/labels");
const stripe = { key: "rk_live_51FaKeFaKe0aB1cD2eF3gH4iJ5kL" };
const publishable = { key: "pk_test_FaKe0000000000000000000000" };
const keyOf = () => new TextEncoder().encode(process.env.COURIER_KEY);

app.register(cookie);

async function driver(request: FastifyRequest, reply: FastifyReply) {
  try {
    await jwtVerify(request.cookies.session ?? "", keyOf(), { algorithms: ["HS256"] });
  } catch {
    return reply.code(401).send();
  }
}

function whoami(request: FastifyRequest): string {
  return String(decodeJwt(request.cookies.session ?? "").sub);
}

app.addHook("onRequest", async (request, reply) => {
  reply.header("Access-Control-Allow-Origin", request.headers.origin ?? "*");
  reply.header("Access-Control-Allow-Credentials", "true");
});

app.get<{ Params: { code: string } }>("/parcels/:code", async (request) => parcels.one(request.params.code));

app.get<{ Querystring: { street: string } }>("/track", { preHandler: driver }, async (request, reply) => {
  const rows = await parcels.byStreet(request.query.street);
  reply.type("text/html");
  return "<p>" + rows.length + " parcels in " + request.query.street + "</p>";
});

app.get<{ Params: { "*": string } }>("/labels/*", { preHandler: driver }, async (request) => {
  return readFile(`${labels}/${request.params["*"]}`);
});

app.get<{ Params: { id: string } }>("/label/:id", { preHandler: driver }, async (request) => {
  return readFile(resolve(labels, `${Number.parseInt(request.params.id, 10)}.pdf`));
});

app.post<{ Body: { file: string } }>("/labels/print", { preHandler: driver }, async (request) => {
  const { file } = request.body;
  return childProcess.execSync("lp -- " + file).toString();
});

app.post<{ Body: { file: string } }>("/labels/count", { preHandler: driver }, async (request) => {
  return childProcess.execFileSync("pdfinfo", ["--", request.body.file]).toString();
});

app.post<{ Body: { tariff: string } }>("/price", { preHandler: driver }, async (request) => {
  return vm.runInNewContext(request.body.tariff, { kg: 3 });
});

app.post<{ Body: { url: string } }>("/webhook/test", { preHandler: driver }, async (request) => {
  const { status } = await axios.post(request.body.url, { ping: whoami(request) });
  return { status };
});

app.delete<{ Params: { code: string } }>("/parcels/:code", async (request) => {
  return { removed: request.params.code };
});

app.get("/me", async (request) => ({ driver: whoami(request) }));

app.setErrorHandler((error, _request, reply) => {
  reply.code(500).send({ reason: String(error.stack) });
});

app.setNotFoundHandler((_request, reply) => reply.code(404).send({ reason: "not found" }));

app.listen({ port: 3000, host: "0.0.0.0" });
