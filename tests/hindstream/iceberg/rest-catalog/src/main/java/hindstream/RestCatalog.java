package hindstream;

import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * Iceberg's own REST catalog, over a database, on loopback.
 *
 * <p>Arguments: the address of the database, and of the folder of the tables. It prints the address to reach it by, and
 * ends when its standard input does.
 */
public final class RestCatalog {
  private RestCatalog() {}

  public static void main(String[] arguments) throws Exception {
    var catalog = new JdbcCatalog();
    catalog.initialize("lake", Map.of("uri", arguments[0], "warehouse", arguments[1], "jdbc.schema-version", "V1"));
    var context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(server.getURI());
    while (System.in.read() >= 0) {}
    server.stop();
  }
}
