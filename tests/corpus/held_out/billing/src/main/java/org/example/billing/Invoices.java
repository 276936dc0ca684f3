package org.example.billing;

import jakarta.persistence.EntityManager;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.beans.XMLDecoder;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.HttpsURLConnection;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamReader;

final class Invoices {
  private static final Path ROOT = Path.of("/var/lib/billing");
  private final EntityManager entities;

  Invoices(EntityManager entities) {
    this.entities = entities;
  }

  List<?> of(String customer) {
    return entities.createQuery("from Invoice i where i.customer = :customer").setParameter("customer", customer).getResultList();
  }

  List<?> search(HttpServletRequest request) {
    String query = String.format("select * from invoices where city = '%s'", request.getParameter("city"));
    return entities.createNativeQuery(query).getResultList();
  }

  List<?> sorted(String column) {
    StringBuilder query = new StringBuilder("from Invoice i order by ");
    query.append(column);
    return entities.createQuery(query.toString()).getResultList();
  }

  void greet(HttpServletRequest request, HttpServletResponse response) throws IOException {
    response.getWriter().println("<p>Invoices of " + request.getParameter("name") + "</p>");
  }

  byte[] pdf(HttpServletRequest request) throws IOException {
    return Files.readAllBytes(ROOT.resolve(request.getParameter("file")));
  }

  byte[] attachment(String name) throws IOException {
    Path path = ROOT.resolve(name).normalize();
    if (!path.startsWith(ROOT)) {
      throw new IOException("outside of the directory");
    }
    return Files.readAllBytes(path);
  }

  Object template(InputStream stream) {
    try (XMLDecoder decoder = new XMLDecoder(stream)) {
      return decoder.readObject();
    }
  }

  XMLStreamReader reader(InputStream stream) throws Exception {
    XMLInputFactory factory = XMLInputFactory.newFactory();
    factory.setProperty(XMLInputFactory.SUPPORT_DTD, true);
    return factory.createXMLStreamReader(stream);
  }

  XMLStreamReader strictReader(InputStream stream) throws Exception {
    XMLInputFactory factory = XMLInputFactory.newFactory();
    factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
    factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
    return factory.createXMLStreamReader(stream);
  }

  byte[] seal(byte[] text) throws Exception {
    SecretKeySpec key = new SecretKeySpec("b1ll1ng-fake-k3y".getBytes(StandardCharsets.UTF_8), "AES");
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(128, new byte[12]));
    return cipher.doFinal(text);
  }

  Cipher archive() throws Exception {
    return Cipher.getInstance("RC4");
  }

  KeyPair keys() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
    generator.initialize(512);
    return generator.generateKeyPair();
  }

  byte[] mark(byte[] body) throws Exception {
    return MessageDigest.getInstance("SHA-256").digest(body);
  }

  String downloadToken() {
    return Long.toHexString(ThreadLocalRandom.current().nextLong());
  }

  void trust(HttpsURLConnection connection) {
    connection.setHostnameVerifier((host, session) -> true);
  }

  boolean paid(Integer first, Integer second) {
    return first == second;
  }

  void open(HttpServletRequest request) throws IOException {
    new ProcessBuilder("bash", "-c", "xdg-open " + request.getParameter("file")).start();
  }

  void convert(Path file) throws IOException {
    new ProcessBuilder("pdftotext", "--", file.toString()).start();
  }
}
