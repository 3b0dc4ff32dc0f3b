"""The client library on trio, its blocking facade, Arrow columns, and the Spark data source."""
